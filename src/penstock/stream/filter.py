"""Read what a subscriber wants to see: query parameters, or the data of a `filter` frame.

    type=metastore.record.*  source=metastore.api  severity=error,critical
    correlationId=req-1      tag.issueId=42        from=…  to=…       after=<position>
    upcast=false

The names and their meaning are those of GET /admin/events (`store.query`), without what makes no
sense live: pages, and jsonPath, which only PostgreSQL evaluates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import JsonValue
from penstock.store.query import EventQuery, read_query
from penstock.store.view import read_upcast
from penstock.stream.frames import Style

_TAG = "tag."
_POSITION = re.compile(r"[0-9]{1,18}", re.ASCII)
_PAGING = ("limit", "cursor", "asOf")


def read_after(text: str | None) -> int | None:
    """A position to resume after; None when there is none."""
    if text is None or text == "":
        return None
    if _POSITION.fullmatch(text) is None:
        raise QueryInvalid(
            f"expected a position in decimal digits, found {text[:40]!r}",
            parameter="after",
            remedy="Send the `position` of the last event you have, or 0 for everything.",
        )
    return int(text)


def style_of(upcast: str | None) -> Style:
    """How frames are written for the parameter `upcast`."""
    return Style.NATIVE if read_upcast(upcast) else Style.AS_STORED


def read_filter(pairs: Sequence[tuple[str, str]], tenant_id: str) -> EventQuery:
    """The filter of one subscriber; QueryInvalid names the first parameter that does not fit."""
    for name, _ in pairs:
        if name == "jsonPath":
            raise refuse_json_path()
        if name in _PAGING:
            raise QueryInvalid(
                f"expected a live filter, found {name}, which is for pages",
                parameter=name,
                remedy="Resume with `after=<position>`; read pages with GET /admin/events.",
            )
    return read_query(pairs, tenant_id=tenant_id)[0]


def pairs_of(data: JsonValue) -> list[tuple[str, str]]:
    """The data of a `filter` frame as parameters: values are strings, or arrays of strings."""
    if not isinstance(data, dict):
        raise QueryInvalid("expected an object of filters", parameter="data")
    pairs: list[tuple[str, str]] = []
    for name, value in data.items():
        if name == "tags" and isinstance(value, dict):
            pairs.extend((f"{_TAG}{key}", _string(f"tags.{key}", v)) for key, v in value.items())
            continue
        items = value if isinstance(value, list) else [value]
        pairs.extend((name, _string(name, item)) for item in items)
    return pairs


def refuse_json_path() -> QueryInvalid:
    """The answer to a jsonPath on the live stream: it would run for every event and client."""
    return QueryInvalid(
        "expected a live filter without jsonPath",
        parameter="jsonPath",
        remedy="Filter the stream by type, source, severity, correlationId or tag.<key>; "
        "jsonPath works with GET /admin/events.",
    )


def _string(name: str, value: JsonValue) -> str:
    if not isinstance(value, str):
        raise QueryInvalid("expected a string or an array of strings", parameter=name[:64])
    return value
