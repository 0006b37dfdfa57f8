"""Read what a URL asks for: names in its path, and the parameters that a route knows.

An unknown parameter is refused with the nearest known name: one that is passed over would show what
nobody asked for. A name that no row could have is simply not found.
"""

from __future__ import annotations

import difflib
from datetime import datetime, timedelta

from starlette.requests import Request

from penstock.base.clock import parse_instant
from penstock.base.errors import NotFound, QueryInvalid
from penstock.store.values import is_storable, read, read_integer, read_text

VALUES_MAX = 50
RANGES = {"1h": 1, "3h": 3, "6h": 6, "12h": 12, "24h": 24, "3d": 72, "7d": 168}
RANGE_DEFAULT = "24h"


class Asked:
    """The parameters of a request, each read at most once by its route."""

    def __init__(self, request: Request, *known: str) -> None:
        self._said: dict[str, list[str]] = {}
        for name, value in request.query_params.multi_items():
            if name not in known:
                raise _unknown(name, known)
            self._said.setdefault(name, []).append(read(name, value, read_text))

    def one(self, name: str) -> str | None:
        """The value of a parameter that may be given once."""
        values = self._said.get(name, [])
        if len(values) > 1:
            raise QueryInvalid(
                f"expected {name} once, found it {len(values)} times", parameter=name
            )
        return values[0] if values else None

    def among(self, name: str, *words: str) -> tuple[str, ...]:
        """Several words out of a closed set, by comma or repeated; none when it is left out."""
        found = [word for value in self._said.get(name, []) for word in value.split(",")]
        for word in found[:VALUES_MAX]:
            if word not in words:
                raise QueryInvalid(
                    f"{name}: expected one of {', '.join(words)}, found {word[:40]!r}",
                    parameter=name,
                )
        return tuple(dict.fromkeys(found[:VALUES_MAX]))

    def number(self, name: str, default: int, *, least: int = 1, most: int = 200) -> int:
        """A whole number, brought within its bounds."""
        text = self.one(name)
        return default if text is None else max(least, min(most, read(name, text, read_integer)))

    def exactly(self, name: str) -> int | None:
        """A whole number as it stands, or None."""
        text = self.one(name)
        return None if text is None else read(name, text, read_integer)

    def instant(self, name: str) -> datetime | None:
        """An instant, or None."""
        text = self.one(name)
        return None if text is None else read(name, text, parse_instant)

    def span(self, now: datetime) -> tuple[datetime, datetime]:
        """The stretch that `range`, or `from` and `to`, name; the last day when none does."""
        since, until = self.instant("from"), self.instant("to") or now
        word = self.one("range")
        if word is not None and word not in RANGES:
            raise QueryInvalid(
                f"range: expected one of {', '.join(RANGES)}, found {word[:40]!r}",
                parameter="range",
            )
        if since is None:
            hours = RANGES[word or RANGE_DEFAULT]
            since = max(until, _FIRST) - timedelta(hours=hours)
        elif word is not None:
            raise QueryInvalid("expected either range or from, found both", parameter="range")
        if since >= until:
            raise QueryInvalid("expected from to be before to", parameter="from")
        return since, until


_FIRST = parse_instant("1970-02-01T00:00:00Z")


def named(request: Request, part: str, what: str) -> str:
    """A name in the path; NotFound when nothing could be called that."""
    text: str = request.path_params[part]
    if not is_storable(text) or len(text) > 500:
        raise NotFound(f"expected a {what}, found none by that name")
    return text


def _unknown(name: str, known: tuple[str, ...]) -> QueryInvalid:
    near = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    listed = ", ".join(known) or "no parameter"
    return QueryInvalid(f"expected {listed}, found {name[:64]!r}{hint}", parameter=name[:64])
