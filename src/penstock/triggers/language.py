"""Say what a template may contain: a few tags, the filters of `filters`, five names.

    if unless case for break continue assign capture comment #        event events trigger now
    no include, render, layout, tablerow, liquid, cycle, increment    (run keys: parameters)

What is not listed does not parse. A template of nothing but texts and plain look-ups, which is what
people write, needs no Liquid to be rendered: `direct_parts` takes it apart.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final, TextIO, TypeAlias

from liquid import BoundTemplate, Environment, RenderContext
from liquid.builtin.content import ContentNode, Literal
from liquid.builtin.expressions import FilteredExpression, Path
from liquid.builtin.illegal import Illegal
from liquid.builtin.output import Output, OutputNode
from liquid.builtin.tags import (
    assign_tag,
    capture_tag,
    case_tag,
    comment_tag,
    for_tag,
    if_tag,
    inline_comment_tag,
    unless_tag,
)
from liquid.undefined import FalsyStrictUndefined, Undefined

from penstock.triggers.budget import OUTPUT_BYTES_MAX, WORK_MAX, Bounded
from penstock.triggers.filters import FILTERS, text_of

SOURCE_CHARS_MAX: Final = 8_000
NAMES: Final = ("event", "events", "trigger", "now")
RUN_KEY_NAMES: Final = (*NAMES, "parameters")
_METHODS: Final = frozenset({"size", "first", "last"})  # Liquid gives them a meaning of their own

Segments: TypeAlias = "tuple[str | int, ...]"
Part: TypeAlias = "str | Segments"  # a text as it stands, or where to look


class _Written(OutputNode):
    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        return buffer.write(text_of(self.expression.evaluate(context)))


class _Output(Output):
    node_class = _Written


class _Missing(FalsyStrictUndefined):
    """What is not there, where that is an error; `default` and `if` may ask about it."""

    force_liquid_default = True


class _Template(BoundTemplate):
    context_class = Bounded


class _Language(Environment):
    template_class = _Template
    block_nesting_limit = 10
    context_depth_limit = 20
    loop_iteration_limit = WORK_MAX
    local_namespace_limit = 4 * 1024 * 1024
    output_stream_limit = OUTPUT_BYTES_MAX

    def setup_tags_and_filters(self, *, extra: bool = False) -> None:  # noqa: ARG002
        for tag in (
            Literal,
            _Output,
            Illegal,
            if_tag.IfTag,
            unless_tag.UnlessTag,
            case_tag.CaseTag,
            for_tag.ForTag,
            for_tag.BreakTag,
            for_tag.ContinueTag,
            assign_tag.AssignTag,
            capture_tag.CaptureTag,
            comment_tag.CommentTag,
            inline_comment_tag.InlineCommentTag,
        ):
            self.add_tag(tag)
        self.filters.update(FILTERS)


LENIENT: Final = _Language(undefined=Undefined)
STRICT: Final = _Language(undefined=_Missing)


def unknown_names(template: BoundTemplate, names: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """What the template uses that is not there: a sentence each, and where it stands."""
    analysis = template.analyze(include_partials=False)
    for name, uses in analysis.globals.items():
        if name not in names:
            yield _sentence("one of the names", name, names), uses[0].span.index
    for name, spans in analysis.filters.items():
        if name not in FILTERS:
            yield _sentence("a filter", name, tuple(FILTERS)), spans[0].index


def look_ups(template: BoundTemplate) -> tuple[tuple[str, ...], ...]:
    """Every place the template looks at, from its first name on; `*` for indices and variables."""
    variables = template.analyze(include_partials=False).globals.values()
    trails = (
        tuple(segment if isinstance(segment, str) else "*" for segment in use.segments)
        for uses in variables
        for use in uses
    )
    return tuple(dict.fromkeys(trails))


def _sentence(what: str, name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(str(name)[:80], known, 1)
    listed = f" {', '.join(known)}" if len(known) < 10 else " that exists"
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"expected {what}{listed}, found {str(name)[:80]!r}{hint}"


def direct_parts(template: BoundTemplate) -> tuple[Part, ...] | None:
    """The template as texts and look-ups; None when it does more than that."""
    parts: list[Part] = []
    for node in template.nodes:
        if isinstance(node, ContentNode):
            parts.append(node.text)
            continue
        segments = _segments(node)
        if segments is None:
            return None
        parts.append(segments)
    return tuple(parts)


def _segments(node: object) -> Segments | None:
    if not isinstance(node, OutputNode) or not isinstance(node.expression, FilteredExpression):
        return None
    expression = node.expression
    if expression.filters or not isinstance(expression.left, Path):
        return None
    segments = tuple(s for s in expression.left.path if isinstance(s, str | int))
    is_plain = len(segments) == len(expression.left.path) and not _METHODS & set(segments)
    return segments if is_plain else None
