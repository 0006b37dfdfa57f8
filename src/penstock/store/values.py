"""Check one value of a filter, whoever says it: an HTTP parameter, or a builder in a program.

Every `read_…` gives the value or raises ValueError with a sentence; `read` adds which filter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeVar

from penstock.base.clock import parse_instant
from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import Severity

VALUE_CHARS_MAX = 1_000
_SEGMENTS_MAX = 12
_PARTIAL_MAX = 3  # wildcards beside other characters of a segment: each multiplies the work
_TYPE = re.compile(r"[A-Za-z0-9_.*-]{1,200}")
_TAG_KEY = re.compile(r"[^:\s]{1,64}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_POSITION = re.compile(r"[0-9]{1,18}", re.ASCII)

_Value = TypeVar("_Value")


def read_text(text: str) -> str:
    """Text that a column could hold; what none could hold matches nothing."""
    if not text:
        raise ValueError("expected a value, found nothing")
    if len(text) > VALUE_CHARS_MAX:
        raise ValueError(f"expected at most {VALUE_CHARS_MAX} characters, found {len(text)}")
    if not is_storable(text):
        raise ValueError(f"expected text without NUL and lone surrogates, found {text[:40]!r}")
    return text


def is_storable(text: str) -> bool:
    """Whether PostgreSQL could hold the text at all."""
    return not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text)


def is_tag_key(text: str) -> bool:
    """Whether a tag could have this key."""
    return _TAG_KEY.fullmatch(text) is not None and is_storable(text)


def read_type(text: str) -> str:
    """An event type, or a glob that is cheap enough to match."""
    if _TYPE.fullmatch(text) is None:
        raise ValueError(f"expected a type or a glob like metastore.record.*, found {text[:80]!r}")
    segments = text.split(".")
    partial = sum(len(re.findall(r"\*+", s)) for s in segments if s not in ("*", "**"))
    if len(segments) > _SEGMENTS_MAX or partial > _PARTIAL_MAX:
        raise ValueError(
            f"expected at most {_SEGMENTS_MAX} segments and {_PARTIAL_MAX} wildcards beside other"
            f" characters, found {text[:80]!r}"
        )
    return text


def read_severity(text: str) -> Severity:
    """One of the severities."""
    if text not in set(Severity):
        raise ValueError(f"expected one of {', '.join(Severity)}, found {text[:40]!r}")
    return Severity(text)


def read_integer(text: str) -> int:
    """A whole number in decimal digits."""
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(f"expected a whole number, found {text[:40]!r}")
    return int(text)


def read_place(text: str) -> int | datetime:
    """A place in the log: a position in decimal digits, or an instant."""
    return int(text) if _POSITION.fullmatch(text) else last_of(parse_instant(text))


def first_of(at: datetime) -> datetime:
    """The first moment of the millisecond that is shown for an instant."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def last_of(at: datetime) -> datetime:
    """The last moment of the millisecond that is shown for an instant."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000 + 999)


def read(name: str, text: str, reader: Callable[[str], _Value]) -> _Value:
    """What a reader makes of a text; QueryInvalid names the filter when it cannot."""
    try:
        return reader(text)
    except ValueError as error:
        raise QueryInvalid(f"{name}: {error}", parameter=name) from None


def several(
    name: str, so_far: tuple[_Value, ...], texts: Iterable[str], reader: Callable[[str], _Value]
) -> tuple[_Value, ...]:
    """What is there already and what more texts say, each once."""
    return tuple(dict.fromkeys((*so_far, *(read(name, text, reader) for text in texts))))


def bounds(
    first: datetime | None, last: datetime | None
) -> tuple[datetime | None, datetime | None]:
    """Both ends belong to the range, to the millisecond, since that is how instants are shown."""
    first, last = first and first_of(first), last and last_of(last)
    if first is not None and last is not None and first > last:
        raise QueryInvalid("expected from to be no later than to", parameter="from")
    return first, last
