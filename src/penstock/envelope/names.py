"""Say which names an event type and a source may have, and match types against globs.

    type     2-6 segments    metastore.record.updated   or   CODE.MERGED.SUCCESS
    source   1-200           metastore.worker           or, from CloudEvents, a URI reference
    glob     per segment     metastore.record.*         metastore.**         metastore.rec*.*

In a glob `*` is exactly one segment, or any part of one beside other characters; `**` is any number
of segments, none included. `glob_regex` says the same to PostgreSQL, held to it by
tests/envelope/test_names_on_postgres.py.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

TYPE_CHARS_MAX: Final = 200
SOURCE_CHARS_MAX: Final = 200

_TYPE: Final = re.compile(
    r"[a-z][a-z0-9_-]*(?:\.[a-z0-9][a-z0-9_-]*){1,5}"
    r"|[A-Z][A-Z0-9_]*(?:\.[A-Z0-9][A-Z0-9_]*){1,5}"
)
# The characters of a URI reference but `*` and `'`: a source is also written where they mean more.
_SOURCE: Final = re.compile(r"[A-Za-z0-9/][A-Za-z0-9._~:/?#@!$&()+,;=%\[\]-]*")


def type_fault(text: str) -> str | None:
    """Why `text` is no event type, or None."""
    if len(text) > TYPE_CHARS_MAX:
        return f"expected at most {TYPE_CHARS_MAX} characters, found {len(text)}"
    return _type_fault(text)


def source_fault(text: str) -> str | None:
    """Why `text` is no source, or None."""
    if len(text) > SOURCE_CHARS_MAX:
        return f"expected at most {SOURCE_CHARS_MAX} characters, found {len(text)}"
    return _source_fault(text)


# Programs publish the same few names again and again. Only short texts get as far as a cache.
@lru_cache(4096)
def _type_fault(text: str) -> str | None:
    if _TYPE.fullmatch(text):
        return None
    return (
        "expected 2 to 6 segments joined by dots, all lower case (metastore.record.updated)"
        f" or all upper case (CODE.MERGED.SUCCESS), found {text[:80]!r}"
    )


@lru_cache(4096)
def _source_fault(text: str) -> str | None:
    if _SOURCE.fullmatch(text):
        return None
    return f"expected a dotted name such as metastore.worker, found {text[:80]!r}"


def is_glob(pattern: str) -> bool:
    """Whether `pattern` stands for more than one type."""
    return "*" in pattern


def matches_glob(pattern: str, event_type: str) -> bool:
    """Whether `event_type` is one of those that `pattern` stands for."""
    if "*" not in pattern:
        return pattern == event_type
    return _compiled(pattern).fullmatch(event_type) is not None


def glob_regex(pattern: str) -> str:
    """The glob as an anchored regular expression that Python and PostgreSQL read alike."""
    # Any number of segments twice is any number, and costs more to match.
    pairs = pairwise(["", *pattern.split(".")])
    segments = [segment for pair in pairs if (segment := pair[1]) != "**" or pair[0] != "**"]
    if segments == ["**"]:
        return r"\A.*\Z"
    first, *rest = segments
    regex = r"(?:[^.]+\.)*" if first == "**" else _segment(first)
    joined = first == "**"  # the dot before the next segment is written already
    for segment in rest:
        if segment == "**":
            regex += r"(?:\.[^.]+)*"
        else:
            regex += _segment(segment) if joined else rf"\.{_segment(segment)}"
        joined = False
    return rf"\A{regex}\Z"


def _segment(segment: str) -> str:
    if segment == "*":
        return "[^.]+"
    return "[^.]*".join(re.escape(part) for part in re.split(r"\*+", segment))


@lru_cache(1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(glob_regex(pattern), re.DOTALL)
