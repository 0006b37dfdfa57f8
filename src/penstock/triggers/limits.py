"""Say how much is too much: events of a source, failures of a trigger, rounds of a loop.

    EVENT_SOURCE_RATE_LIMITS='[{"source": "*", "limit": 1000, "intervalMs": 60000}]'

Limits are part of what a decision depends on, so a pass is recorded with those it was made under
(`Limits.wire`). A malformed setting stops the start: a limit that is misspelt must not be no limit.
"""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from penstock.base.errors import NotInProfile, SettingsInvalid
from penstock.envelope.codec import decode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.envelope.names import source_fault

EVERY_SOURCE: Final = "*"
INTERVAL_MS_DEFAULT: Final = 60_000
_SETTING: Final = "EVENT_SOURCE_RATE_LIMITS"
_FIELDS: Final = ("source", "limit", "intervalMs", "windowMs", "pauseMs")
_MS_MAX: Final = 86_400_000
_REMEDY: Final = (
    f'Write {_SETTING} as [{{"source": "metastore.api", "limit": 100, "intervalMs": 60000,'
    ' "pauseMs": 60000}]; the source "*" stands for all that are not listed.'
)


@dataclass(frozen=True, slots=True)
class SourceLimit:
    """So many events of a source in so long; one more pauses it."""

    source: str
    limit: int
    interval_ms: int
    pause_ms: int

    def wire(self) -> JsonObject:
        """The limit as it is written in the setting."""
        return {
            "source": self.source,
            "limit": self.limit,
            "intervalMs": self.interval_ms,
            "pauseMs": self.pause_ms,
        }


@dataclass(frozen=True, slots=True)
class Breaker:
    """So many failed launches in so long pause a trigger for so long."""

    threshold: int = 5
    window_ms: int = 300_000
    pause_ms: int = 300_000


@dataclass(frozen=True, slots=True)
class LoopGuard:
    """So many causes an event may have, and so often a trigger may launch in one correlation."""

    depth_max: int = 16
    launches_max: int = 100


@dataclass(frozen=True, slots=True)
class RetryBackoff:
    """base · factor^(n-1), at most the maximum, moved by up to `jitter` of itself."""

    base_ms: int = 10_000
    factor: float = 2.0
    max_ms: int = 900_000
    jitter: float = 0.2

    def delay(self, delivery_id: str, attempt: int) -> timedelta:
        """How long to wait after failed attempt number `attempt`; the same for the same delivery.

        The jitter is a hash, not chance: a replay must wait as long as the record says.
        """
        plain = min(float(self.max_ms), self.base_ms * self.factor ** min(attempt - 1, 64))
        digest = hashlib.sha256(f"{delivery_id} {attempt}".encode()).digest()
        share = int.from_bytes(digest[:4], "big") / 0xFFFF_FFFF
        moved = plain * (1 + self.jitter * (2 * share - 1))
        return timedelta(milliseconds=round(max(self.base_ms, min(self.max_ms, moved))))


@dataclass(frozen=True, slots=True)
class Limits:
    """Every limit that decisions are made under."""

    sources: tuple[SourceLimit, ...] = ()
    breaker: Breaker = Breaker()
    loops: LoopGuard = LoopGuard()
    backoff: RetryBackoff = RetryBackoff()

    def of_source(self, source: str) -> SourceLimit | None:
        """The limit of a source: its own, else the one for all that are not listed."""
        fallback = None
        for each in self.sources:
            if each.source == source:
                return each
            if each.source == EVERY_SOURCE:
                fallback = each
        return fallback

    def wire(self) -> JsonObject:
        """The limits as a pass records them."""
        breaker, loops, backoff = self.breaker, self.loops, self.backoff
        return {
            "sources": [each.wire() for each in self.sources],
            "breaker": [breaker.threshold, breaker.window_ms, breaker.pause_ms],
            "loops": [loops.depth_max, loops.launches_max],
            "backoff": [backoff.base_ms, backoff.factor, backoff.max_ms, backoff.jitter],
        }


def limits_from(wire: JsonObject) -> Limits:
    """The limits that were recorded."""
    said: Any = wire
    return Limits(
        tuple(_limit(n, each) for n, each in enumerate(said["sources"])),
        Breaker(*said["breaker"]),
        LoopGuard(*said["loops"]),
        RetryBackoff(*said["backoff"]),
    )


def parse_source_limits(text: str) -> tuple[SourceLimit, ...]:
    """The limits that the setting says; SettingsInvalid names the first thing wrong with it."""
    if not text.strip():
        return ()
    try:
        tree = decode(text.encode(errors="replace"))
    except NotInProfile as error:
        raise _invalid(f"expected a JSON array, found {error.detail}") from None
    if not isinstance(tree, list):
        raise _invalid(f"expected a JSON array, found {type(tree).__name__}")
    limits = tuple(_limit(n, each) for n, each in enumerate(tree))
    sources = [each.source for each in limits]
    for source in sources:
        if sources.count(source) > 1:
            raise _invalid(f"expected every source once, found {source!r} twice")
    return limits


def _limit(n: int, tree: JsonValue) -> SourceLimit:
    if not isinstance(tree, dict):
        raise _invalid(f"/{n}: expected an object, found {type(tree).__name__}")
    for name in tree:
        if name not in _FIELDS:
            near = difflib.get_close_matches(name, _FIELDS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise _invalid(f"/{n}: expected one of {', '.join(_FIELDS)}, found {name!r}{hint}")
    if "intervalMs" in tree and "windowMs" in tree:
        raise _invalid(f"/{n}: expected intervalMs or windowMs, found both")
    interval = _number(
        n, "intervalMs", tree.get("intervalMs", tree.get("windowMs", INTERVAL_MS_DEFAULT)), _MS_MAX
    )
    return SourceLimit(
        _source(n, tree.get("source")),
        _number(n, "limit", tree.get("limit"), 1_000_000),
        interval,
        _number(n, "pauseMs", tree.get("pauseMs", interval), _MS_MAX),
    )


def _source(n: int, value: JsonValue) -> str:
    if not isinstance(value, str):
        raise _invalid(f"/{n}/source: expected a source or '*', found {value!r}")
    fault = None if value == EVERY_SOURCE else source_fault(value)
    if fault is not None:
        raise _invalid(f"/{n}/source: {fault}")
    return value


def _number(n: int, name: str, value: JsonValue, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise _invalid(f"/{n}/{name}: expected a whole number from 1 to {most}, found {value!r}")
    return value


def _invalid(detail: str) -> SettingsInvalid:
    return SettingsInvalid(f"{_SETTING}: {detail}", remedy=_REMEDY)
