"""Write the reference of event types: an index, a page for each type, an AsyncAPI document.

    TypeEntry… ── reference ──▶ {"event-types.md": …, "event-types/asset.produced.md": …,
                                 "asyncapi.json": …}

What is committed under docs/reference/ is what this gives for the declarations in code;
tests/registry/test_reference_pages.py compares the two, so the reference cannot fall behind.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import groupby

from penstock.registry.asyncapi import HOST, asyncapi
from penstock.registry.entry import TypeEntry, VersionEntry

INDEX = "event-types.md"
DOCUMENT = "asyncapi.json"
FOLDER = "event-types"
FOOT = f"[All event types](../{INDEX})"  # by which a page of ours is known

_HEAD = """# Event types

Written by `penstock registry docs`. Every type can be published as it is; unknown payload fields
are kept. Types of your own are registered with `penstock registry register` or with
`POST /admin/event-schemas`. For programs there is the same as [AsyncAPI](asyncapi.json).
"""
_RULES = {"declared": "declared", "suffix": "by its name", "default": "by default"}
_ESCAPED = str.maketrans({"|": "\\|", "<": "&lt;", "\n": " ", "\r": " "})


def reference(entries: Sequence[TypeEntry], *, release: str, host: str = HOST) -> dict[str, str]:
    """Every file of the reference, by its path."""
    document = asyncapi(entries, release=release, host=host)
    return {**pages(entries), DOCUMENT: f"{_indented(document)}\n"}


def pages(entries: Iterable[TypeEntry]) -> dict[str, str]:
    """Every page by its path."""
    known = list(entries)
    return {INDEX: index(known)} | {path_of(entry): page(entry) for entry in known}


def path_of(entry: TypeEntry) -> str:
    """Where the page of a type is, as seen from the index."""
    return f"{FOLDER}/{entry.event_type}.md"


def index(entries: Sequence[TypeEntry]) -> str:
    """All types by vocabulary, each with a link to its page."""
    lines = [_HEAD]
    for vocabulary, found in groupby(_by_vocabulary(entries), lambda entry: entry.vocabulary):
        title = f"Vocabulary `{vocabulary}`" if vocabulary else "Registered at run time"
        lines += [f"## {title}", "", "| type | says | severity |", "|---|---|---|"]
        for entry in found:
            link = f"[`{entry.event_type}`]({path_of(entry)})"
            lines.append(f"| {link} | {_cell(entry.purpose)} | {entry.severity} |")
        lines.append("")
    return "\n".join(lines)


def page(entry: TypeEntry) -> str:
    """The page of one type."""
    lines = [f"# {entry.event_type}", "", _cell(entry.purpose) or "Its purpose was not told.", ""]
    lines += [*_facts(entry), ""]
    lines += ["## Fields", "", *_fields(entry), ""]
    lines += ["## Example", "", *_example(entry), ""]
    lines += ["## Versions", "", *_versions(entry.versions), ""]
    lines += [FOOT, ""]
    return "\n".join(lines)


def _by_vocabulary(entries: Sequence[TypeEntry]) -> list[TypeEntry]:
    """In the order given, but the entries of a vocabulary together; those of none last."""
    order = list(dict.fromkeys(entry.vocabulary for entry in entries))
    return sorted(entries, key=lambda e: (e.vocabulary is None, order.index(e.vocabulary)))


def _facts(entry: TypeEntry) -> Iterator[str]:
    yield "| | |"
    yield "|---|---|"
    yield f"| version | {entry.version} |"
    yield f"| severity | {entry.severity}, {_RULES[entry.severity_rule]} |"
    yield f"| sources | {_code(entry.sources) or 'any'} |"
    yield f"| consumers | {_code(entry.consumers) or 'none declared'} |"
    yield f"| tags | {_places(entry.tags) or 'none of its own'} |"
    yield f"| links | {_places(entry.links) or 'by the names of its fields'} |"
    if entry.needs_uuid7:
        yield "| id | must be a UUIDv7 |"
    if entry.derived_requires is not None:
        yield f"| typed reading | needs {_code(entry.derived_requires) or 'nothing more'} |"


def _fields(entry: TypeEntry) -> Iterator[str]:
    if not entry.fields:
        yield "The schema names no fields."
        return
    yield "| field | type | meaning |"
    yield "|---|---|---|"
    for field in entry.fields:
        words = [word for word in ("required", "personal") if getattr(field, word)]
        star = f" ({', '.join(words)})" if words else ""
        yield f"| `{_cell(field.path)}`{star} | {_cell(field.kind)} | {_cell(field.meaning)} |"


def _example(entry: TypeEntry) -> Iterator[str]:
    if entry.example is None:
        yield "None was given."
        return
    yield "The payload of an event:"
    yield ""
    yield "```json"
    yield _indented(entry.example)
    yield "```"


def _versions(versions: Sequence[VersionEntry]) -> Iterator[str]:
    yield "| version | status | since | what changed |"
    yield "|---|---|---|---|"
    for n, each in enumerate(versions):
        changed = "; ".join(each.changes) or ("first version" if n == 0 else "nothing that counts")
        if each.override is not None:
            changed += f" (let in: {each.override.get('reason', '')})"
        since = f"{each.created_at} by {each.created_by}" if each.created_at else "declared"
        yield f"| {each.version} | {each.status} | {_cell(since)} | {_cell(changed)} |"


def _places(pointers: dict[str, str]) -> str:
    return ", ".join(f"`{_cell(name)}` from `{_cell(at)}`" for name, at in pointers.items())


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{_cell(word)}`" for word in words)


def _cell(text: str) -> str:
    """Text that cannot break out of a table cell."""
    return text.translate(_ESCAPED).strip()


def _indented(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=_plain_number)


def _plain_number(value: object) -> float:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"expected a JSON value, found {type(value).__name__}")
