"""Cut a list of events into HTTP bodies that a server takes: one object, or arrays of some size.

A body holds at most 1,000 events and 4 MB, so that an answer comes soon and little is repeated
when it does not. A server with smaller limits says 413, and the batch is cut in half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject

BATCH_EVENTS_MAX = 1_000
BATCH_BYTES_MAX = 4_000_000


@dataclass(frozen=True, slots=True)
class Batch:
    """Some events that travel in one request, and each one's bytes."""

    events: tuple[JsonObject, ...]
    encoded: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        """One event is an object; several are an array."""
        return self.encoded[0] if len(self.encoded) == 1 else b"[" + b",".join(self.encoded) + b"]"

    def halves(self) -> tuple[Batch, Batch]:
        middle = len(self.events) // 2
        return (
            Batch(self.events[:middle], self.encoded[:middle]),
            Batch(self.events[middle:], self.encoded[middle:]),
        )


def batches(
    events: Sequence[JsonObject],
    *,
    events_max: int = BATCH_EVENTS_MAX,
    bytes_max: int = BATCH_BYTES_MAX,
) -> Iterator[Batch]:
    """The events in order, in as few batches as the limits allow."""
    encoded: list[bytes] = []
    start, size = 0, 2  # the brackets
    for index, event in enumerate(events):
        raw = encode(event)
        if encoded and (len(encoded) == events_max or size + len(raw) > bytes_max):
            yield Batch(tuple(events[start:index]), tuple(encoded))
            start, encoded, size = index, [], 2
        encoded.append(raw)
        size += len(raw) + 1  # the comma
    if encoded:
        yield Batch(tuple(events[start:]), tuple(encoded))
