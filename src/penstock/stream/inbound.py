"""Read what a client says on its WebSocket: `ping`, or a new filter. Nothing else is understood.

Pure: what to answer is decided by the caller, how fast a client may talk by `Allowance`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

from penstock.base.errors import QueryInvalid
from penstock.envelope.codec import decode
from penstock.stream.filter import pairs_of

INBOUND_BYTES_MAX = 64 * 1024
INBOUND_PER_SECOND_MAX = 10


@dataclass(frozen=True, slots=True)
class Ping:
    """Are you there?"""


@dataclass(frozen=True, slots=True)
class Refilter:
    """Send me these from now on."""

    pairs: tuple[tuple[str, str], ...]


Request: TypeAlias = Ping | Refilter


def read_request(text: str) -> Request:
    """What the client asks; QueryInvalid or NotInProfile when it cannot be understood."""
    if text == "ping":
        return Ping()
    tree = decode(text.encode(), bytes_max=INBOUND_BYTES_MAX)
    kind = tree.get("type") if isinstance(tree, dict) else None
    if isinstance(tree, dict) and kind == "ping":
        return Ping()
    if isinstance(tree, dict) and kind == "filter":
        return Refilter(tuple(pairs_of(tree.get("data"))))
    found = repr(kind[:40]) if isinstance(kind, str) else "something else"
    raise QueryInvalid(
        f"expected a frame of type ping or filter, found {found}",
        parameter="type",
        remedy='Send `ping`, or {"type": "filter", "data": {"type": "metastore.record.*"}}.',
    )


class Allowance:
    """At most `count` messages in any second."""

    def __init__(self, count: int = INBOUND_PER_SECOND_MAX) -> None:
        self._times: deque[float] = deque(maxlen=count)

    def spend(self, at_s: float) -> bool:
        """Count one message; False when it is one too many."""
        times = self._times
        within = len(times) < (times.maxlen or 0) or at_s - times[0] >= 1
        times.append(at_s)
        return within
