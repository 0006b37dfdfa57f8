"""Render a JSON value of which every text is a template.

    {"n": "{{ event.payload.n }}"} ── compile_json ──▶ JsonTemplate ── render ──▶ {"n": 12}

Keys stay as they are. A rendered text becomes the JSON value that it spells, if it spells one; the
filter `json` keeps a text a text. All templates of one value share one budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from penstock.base.errors import NotInProfile
from penstock.base.pointers import pointer_step
from penstock.envelope.codec import decode
from penstock.envelope.envelope import JsonValue
from penstock.triggers.budget import OUTPUT_BYTES_MAX, Budget
from penstock.triggers.template import TemplateFailed, compile_text, is_template

NODES_MAX: Final = 2_000
DEPTH_MAX: Final = 16
TEMPLATES_MAX: Final = 200

_Write: TypeAlias = "Callable[[Mapping[str, Any], Budget], JsonValue] | None"
_BEGINNINGS: Final = frozenset('{["-0123456789tfn \t\r\n')


@dataclass(frozen=True, slots=True)
class JsonTemplate:
    """A JSON value to render."""

    plain: JsonValue
    write: _Write  # None when there is nothing to render
    reads: tuple[tuple[str, ...], ...] = ()  # every place its templates look at

    def render(self, scope: Mapping[str, Any]) -> JsonValue:
        """The value for these names; TemplateFailed, with the place, when it cannot be made."""
        return self.plain if self.write is None else self.write(scope, Budget())


class _Compiler:
    """Walks over the value once, counting what it holds."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._nodes = 0
        self._templates = 0
        self.reads: list[tuple[str, ...]] = []

    def compile(self, tree: JsonValue, pointer: str, depth: int = 1) -> _Write:
        """What renders the value, or None when it stays as it is."""
        self._nodes += 1
        if self._nodes > NODES_MAX or depth > DEPTH_MAX:
            raise TemplateFailed(
                f"expected at most {NODES_MAX} values and {DEPTH_MAX} levels, found more",
                pointer=pointer,
            )
        if isinstance(tree, str):
            return self._text(tree, pointer) if is_template(tree) else None
        if isinstance(tree, dict):
            return self._object(tree, pointer, depth)
        if isinstance(tree, list | tuple):
            return self._array(list(tree), pointer, depth)
        return None

    def _text(self, source: str, pointer: str) -> _Write:
        self._templates += 1
        if self._templates > TEMPLATES_MAX:
            raise TemplateFailed(f"expected at most {TEMPLATES_MAX} templates", pointer=pointer)
        try:
            template = compile_text(source, strict=self._strict)
        except TemplateFailed as failed:
            raise failed.below(pointer) from None
        self.reads += template.reads

        def write(scope: Mapping[str, Any], budget: Budget) -> JsonValue:
            try:
                return spelled(template.spend(scope, budget))
            except TemplateFailed as failed:
                raise failed.below(pointer) from None

        return write

    def _object(self, tree: dict[str, JsonValue], pointer: str, depth: int) -> _Write:
        for key in tree:
            if is_template(key):
                raise TemplateFailed(
                    f"expected keys without templates, found {key[:80]!r}", pointer=pointer
                )
        parts = {
            key: self.compile(value, f"{pointer}/{pointer_step(key)}", depth + 1)
            for key, value in tree.items()
        }
        writes = {key: write for key, write in parts.items() if write is not None}
        if not writes:
            return None

        def write(scope: Mapping[str, Any], budget: Budget) -> JsonValue:
            made = dict(tree)
            for key, each in writes.items():
                made[key] = each(scope, budget)
            return made

        return write

    def _array(self, tree: list[JsonValue], pointer: str, depth: int) -> _Write:
        parts = [self.compile(value, f"{pointer}/{n}", depth + 1) for n, value in enumerate(tree)]
        writes = [(n, write) for n, write in enumerate(parts) if write is not None]
        if not writes:
            return None

        def write(scope: Mapping[str, Any], budget: Budget) -> JsonValue:
            made = list(tree)
            for n, each in writes:
                made[n] = each(scope, budget)
            return made

        return write


def compile_json(tree: JsonValue, *, strict: bool = False) -> JsonTemplate:
    """The template that a JSON value is; TemplateFailed, with the place, when it is none."""
    compiler = _Compiler(strict=strict)
    write = compiler.compile(tree, "")
    return JsonTemplate(tree, write, tuple(dict.fromkeys(compiler.reads)))


def spelled(text: str) -> JsonValue:
    """The JSON value that a text spells; the text itself when it spells none."""
    # Nearly every text is no JSON, and its first character says so.
    if not text or text[0] not in _BEGINNINGS:
        return text
    try:
        return decode(text.encode(), bytes_max=OUTPUT_BYTES_MAX)
    except (NotInProfile, UnicodeEncodeError):
        return text
