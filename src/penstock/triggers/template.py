"""Render one text that is a Liquid template, within limits.

    "order-{{ event.payload.id }}" ── compile_text ──▶ Template ── render ──▶ "order-7"

No file, no other template, no clock is within reach; `budget` bounds the work. What is missing is
empty, unless `strict` makes it an error, as when a trigger is checked against a sample event. Plain
look-ups are done without Liquid, to the same effect: tests/triggers/test_template_agreement.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from liquid import BoundTemplate
from liquid.exceptions import LiquidError, LiquidInterrupt
from liquid.output import LimitedStringIO

from penstock.base.errors import Fault, NotInProfile, PenstockError
from penstock.triggers.budget import OUTPUT_BYTES_MAX, Bounded, Budget
from penstock.triggers.filters import text_of
from penstock.triggers.language import (
    LENIENT,
    NAMES,
    SOURCE_CHARS_MAX,
    STRICT,
    Part,
    Segments,
    direct_parts,
    look_ups,
    unknown_names,
)

_OBJECT: Final[frozenset[type]] = frozenset({dict})
_ARRAY: Final[frozenset[type]] = frozenset({list})
# What Liquid lets through: arithmetic, look-ups and conversions of whatever an event holds.
_SURPRISES: Final = (
    LiquidError, LiquidInterrupt, NotInProfile, ArithmeticError, LookupError, TypeError,
    ValueError, AttributeError, RecursionError,
)  # fmt: skip


class TemplateFailed(PenstockError):
    """A template that does not compile, or cannot be rendered for this event."""

    code = "template_failed"
    remedy = "Correct the template as `errors` says; docs/guides/triggers.md lists what it may use."

    def __init__(
        self, detail: str, *, pointer: str = "", line: int | None = None, column: int | None = None
    ) -> None:
        where = "" if line is None else f" (line {line}, column {column})"
        super().__init__(f"{detail}{where}", faults=(Fault(pointer, f"{detail}{where}"),))
        self.pointer, self.line, self.column = pointer, line, column

    def __reduce__(self) -> tuple[Any, ...]:
        return _failed_again, (self.faults[0].detail, self.pointer, self.line, self.column)

    def below(self, pointer: str) -> TemplateFailed:
        """The same failure, seen from further up the document."""
        return _failed_again(self.faults[0].detail, pointer + self.pointer, self.line, self.column)


def _failed_again(
    detail: str, pointer: str, line: int | None, column: int | None
) -> TemplateFailed:
    failed = TemplateFailed(detail, pointer=pointer)
    failed.line, failed.column = line, column
    return failed


@dataclass(frozen=True, slots=True)
class Template:
    """A text to render."""

    source: str
    write: Callable[[Mapping[str, Any], Budget], str]
    reads: tuple[tuple[str, ...], ...] = ()  # every place it looks at; `*` for what varies

    def render(self, scope: Mapping[str, Any]) -> str:
        """The text for these names; TemplateFailed when it cannot be made."""
        return self.spend(scope, Budget())

    def spend(self, scope: Mapping[str, Any], budget: Budget) -> str:
        """The text, paid out of a budget that other templates share."""
        try:
            return budget.pay_output(self.write(scope, budget))
        except _SURPRISES as error:
            raise _failed(error) from None


@lru_cache(8192)
def compile_text(source: str, *, strict: bool = False, names: tuple[str, ...] = NAMES) -> Template:
    """The template that a text is; TemplateFailed, with line and column, when it is none."""
    if not is_template(source):
        return Template(source, lambda _scope, _budget: source)
    if len(source) > SOURCE_CHARS_MAX:
        raise TemplateFailed(f"expected at most {SOURCE_CHARS_MAX} characters in a template")
    parsed = _parse(source, strict=strict)
    for sentence, start in unknown_names(parsed, names):
        line, column = _place(source, start)
        raise TemplateFailed(sentence, line=line, column=column)
    parts = None if strict else direct_parts(parsed)
    write = _through_liquid(parsed) if parts is None else _direct(parts)
    return Template(source, write, look_ups(parsed))


def is_template(text: str) -> bool:
    """Whether there is anything to render in a text."""
    return "{{" in text or "{%" in text


def _parse(source: str, *, strict: bool) -> BoundTemplate:
    try:
        return (STRICT if strict else LENIENT).from_string(source)
    except (LiquidError, RecursionError) as error:
        raise _failed(error) from None


def _through_liquid(parsed: BoundTemplate) -> Callable[[Mapping[str, Any], Budget], str]:
    def write(scope: Mapping[str, Any], budget: Budget) -> str:
        buffer = LimitedStringIO(limit=OUTPUT_BYTES_MAX)
        parsed.render_with_context(Bounded(parsed, budget=budget, scope=scope), buffer)
        return buffer.getvalue()

    return write


def _direct(parts: tuple[Part, ...]) -> Callable[[Mapping[str, Any], Budget], str]:
    looks = [part if isinstance(part, str) else _look(part) for part in parts]

    def write(scope: Mapping[str, Any], _: Budget) -> str:
        return "".join(part if isinstance(part, str) else text_of(part(scope)) for part in looks)

    return write


def _look(segments: Segments) -> Callable[[Mapping[str, Any]], Any]:
    root, *rest = segments

    def look(scope: Mapping[str, Any]) -> Any:
        value: Any = scope.get(str(root))
        for segment in rest:
            if type(value) not in (_OBJECT if isinstance(segment, str) else _ARRAY):
                return None
            try:
                value = value[segment]
            except (KeyError, IndexError):
                return None
        return value

    return look


def _failed(error: Exception) -> TemplateFailed:
    if not isinstance(error, LiquidError):
        return TemplateFailed(f"expected a template that can be rendered, found: {_said(error)}")
    token = error.token
    said = _said(error.message or error)
    if token is None or not 0 <= token.start_index <= len(token.source):
        return TemplateFailed(said)
    line, column = _place(token.source, token.start_index)
    return TemplateFailed(said, line=line, column=column)


def _said(error: object) -> str:
    text = " ".join(str(error).split())
    return text[:200] or type(error).__name__


def _place(source: str, start: int) -> tuple[int, int]:
    before = source[:start]
    return before.count("\n") + 1, start - before.rfind("\n")
