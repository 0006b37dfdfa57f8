"""Read how loud an event says it is: a word, a number, or the last word of its type.

    "WARN" ▶ warning    40 ▶ error    "metastore.sync.failed" ▶ error    "CODE.BUILD.FAILED" ▶ error

Numbers are Python's logging levels. What nobody can read is None, never a guess.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

from penstock.envelope.envelope import JsonValue, Severity


def _words(*said: tuple[Severity, str]) -> dict[str, Severity]:
    return {word: severity for severity, words in said for word in words.split()}


_ALIASES = _words(
    (Severity.CRITICAL, "critical fatal emergency alert panic severe catastrophe catastrophic"),
    (Severity.ERROR, "error err failure failed exception"),
    (Severity.WARNING, "warning warn caution throttled paused degraded"),
    (Severity.INFO, "notice info informational success succeeded ready started created"),
    (Severity.DEBUG, "debug trace verbose"),
)
_SUFFIXES = _words(
    (Severity.CRITICAL, "critical fatal panic"),
    (Severity.ERROR, "failed failure error errored deadletter deadlettered crashed"),
    (Severity.ERROR, "cancelled canceled aborted"),
    (Severity.WARNING, "warning throttled paused retry degraded"),
    (Severity.DEBUG, "debug trace"),
)
_FRAGMENTS = (
    (("fail", "error", "deadletter"), Severity.ERROR),
    (("warn",), Severity.WARNING),
    (("debug", "trace"), Severity.DEBUG),
    (("success", "ready"), Severity.INFO),
    (("critical", "fatal"), Severity.CRITICAL),
)
_LEVELS = (
    (50, Severity.CRITICAL),
    (40, Severity.ERROR),
    (30, Severity.WARNING),
    (20, Severity.INFO),
)
_WORD_MAX = 64  # a longer text is prose, not a level
_INTEGER = re.compile(r"[+-]?\d{1,9}", re.ASCII)
_SEPARATOR = re.compile(r"[^a-z0-9]+")


def read_level(value: JsonValue) -> Severity | None:
    """What an explicit severity or level means."""
    if isinstance(value, str):
        return _read_word(value) if len(value) <= _WORD_MAX else None
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return _read_number(value)
    return None


@lru_cache(maxsize=4096)
def read_suffix(event_type: str) -> Severity | None:
    """What the last word of a type means; `.step-failed` and `STEP_FAILED` end in failed."""
    last = event_type.rpartition(".")[2].lower()
    words = _SEPARATOR.split(last)
    return _SUFFIXES.get("".join(words)) or _SUFFIXES.get(words[-1])


@lru_cache(maxsize=1024)
def _read_word(text: str) -> Severity | None:
    word = text.strip().lower()
    if word in _ALIASES:
        return _ALIASES[word]
    if _INTEGER.fullmatch(word):
        return _read_number(int(word))
    for fragments, severity in _FRAGMENTS:
        if any(fragment in word for fragment in fragments):
            return severity
    return None


def _read_number(level: float | Decimal) -> Severity:
    for least, severity in _LEVELS:
        if level >= least:
            return severity
    return Severity.DEBUG
