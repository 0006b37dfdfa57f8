"""Read YAML as if it were JSON with less ink: values, and the line that each of them stands on.

A plain word is null, true, false, a JSON number, or else a text: `no`, `010` and `2026-01-01` stay
what was written. Anchors are refused, since a few lines of them unfold into gigabytes; so are keys
said twice, and tags. Nothing but plain values can come out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml

from penstock.base.errors import NotInProfile
from penstock.base.pointers import pointer_step
from penstock.envelope.codec import decode
from penstock.envelope.envelope import JsonValue
from penstock.envelope.limits import DEPTH_MAX

FILE_BYTES_MAX: Final = 1024 * 1024
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS: Final[dict[str, JsonValue]] = {
    "": None, "~": None, "null": None, "true": True, "false": False,
}  # fmt: skip


class YamlInvalid(ValueError):
    """A text that is not the YAML we read; `line` says where."""

    def __init__(self, detail: str, line: int) -> None:
        super().__init__(detail)
        self.detail, self.line = detail, line


@dataclass(frozen=True, slots=True)
class Read:
    """One document of a file."""

    value: JsonValue
    line: int
    lines: dict[str, int]  # the line of every JSON Pointer

    def line_of(self, pointer: str) -> int:
        """The line of a place, or of the nearest place around it that is there."""
        while pointer and pointer not in self.lines:
            pointer = pointer.rpartition("/")[0]
        return self.lines.get(pointer, self.line)


def read_yaml(text: str) -> list[Read]:
    """Every document of a text that is not empty; YamlInvalid when it cannot be read."""
    if len(text.encode("utf-8", "replace")) > FILE_BYTES_MAX:
        raise YamlInvalid(f"expected at most {FILE_BYTES_MAX} bytes, found more", 1)
    try:
        _check_events(text)
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        said = error.problem or "something else"
        raise YamlInvalid(f"expected YAML: {said}", 1 if mark is None else mark.line + 1) from None
    except yaml.YAMLError as error:
        raise YamlInvalid(f"expected YAML: {str(error).splitlines()[0]}", 1) from None
    return [_read(node) for node in nodes if node is not None]


def _check_events(text: str) -> None:
    """Refuse what must not be composed: aliases, tags, and what is nested too deep."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise YamlInvalid("expected no aliases, found one", line)
        if (
            isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
            and event.tag is not None
        ):
            raise YamlInvalid(f"expected no tags, found {event.tag[:80]!r}", line)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_MAX:
                raise YamlInvalid(f"expected at most {DEPTH_MAX} levels, found more", line)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _read(node: yaml.Node) -> Read:
    lines: dict[str, int] = {}
    value = _value(node, "", lines)
    return Read(value, node.start_mark.line + 1, lines)


def _value(node: yaml.Node, pointer: str, lines: dict[str, int]) -> JsonValue:
    line = lines.setdefault(pointer, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return dict(_members(node, pointer, lines))
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, f"{pointer}/{n}", lines) for n, item in enumerate(node.value)]
    text = str(node.value)
    is_plain = isinstance(node, yaml.ScalarNode) and not node.style
    return _plain(text, line) if is_plain else text


def _members(
    node: yaml.MappingNode, pointer: str, lines: dict[str, int]
) -> Iterator[tuple[str, JsonValue]]:
    seen = set[str]()
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise YamlInvalid("expected a text as key, found something else", line)
        name = str(key.value)
        if name in seen:
            raise YamlInvalid(f"expected each key once, found {name[:80]!r} again", line)
        seen.add(name)
        place = f"{pointer}/{pointer_step(name)}"
        lines[place] = line
        yield name, _value(value, place, lines)


def _plain(text: str, line: int) -> JsonValue:
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text) is None:
        return text
    try:
        return decode(text.encode())
    except NotInProfile as error:
        raise YamlInvalid(error.detail, line) from None
