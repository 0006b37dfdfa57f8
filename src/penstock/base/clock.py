"""Tell the time as an argument, and write instants one way: RFC 3339, UTC, milliseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Protocol

_INSTANT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


class Clock(Protocol):
    """Whatever can say what time it is."""

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class FixedClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def now(self) -> datetime:
        return self._at

    def move(self, by: timedelta) -> None:
        self._at += by


def parse_instant(text: str) -> datetime:
    """Read an RFC 3339 instant with an offset, from 1970 to 9999, as UTC; else ValueError."""
    # The shape we write ourselves, and nearly everybody sends, needs no regular expression.
    if len(text) == 24 and text[4:20:3] == "--T::." and text[23] == "Z" and text[11:13] < "24":
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return _parse_any(text)
        if at.year >= 1970:
            return at
    return _parse_any(text)


def _parse_any(text: str) -> datetime:
    match = _INSTANT.fullmatch(text)
    if match is None:
        hint = "; a + in a URL is written %2B" if _INSTANT.fullmatch(text.replace(" ", "+")) else ""
        raise ValueError(f"expected RFC 3339 with an offset, found {text[:40]!r}{hint}")
    year, month, day, hour, minute, second = (int(part) for part in match.group(1, 2, 3, 4, 5, 6))
    micros = int((match.group(7) or "0").ljust(6, "0")[:6])
    try:
        at = datetime(year, month, day, hour, minute, min(second, 59), micros, tzinfo=UTC)
    except ValueError:
        raise ValueError(f"expected a time that exists, found {text[:40]!r}") from None
    zone = match.group(8)
    if zone not in "Zz":
        hours, minutes = int(zone[1:3]), int(zone[4:6])
        if hours > 23 or minutes > 59:
            raise ValueError(f"expected an offset under 24 hours, found {zone!r}")
        away = timedelta(hours=hours, minutes=minutes)
        try:
            at = at - away if zone[0] == "+" else at + away
        except OverflowError:
            raise ValueError(f"expected a year from 1970 to 9999, found {text[:40]!r}") from None
    if second > 60 or at.year < 1970:
        raise ValueError(f"expected a year from 1970 to 9999, found {text[:40]!r}")
    return at


def format_instant(at: datetime) -> str:
    """Write an instant as `2026-01-31T10:30:00.000Z`."""
    if at.tzinfo is not UTC:
        at = at.astimezone(UTC)
    return f"{at.isoformat(timespec='milliseconds')[:23]}Z"
