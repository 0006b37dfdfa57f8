"""Send lines to the HTTP door in batches, so that one bad line harms no other.

    batch ── every line one JSON value? ── no ──▶ that line alone, to be refused for itself
                    │ yes
                    ▼
                one array ── 400 or 413 ──▶ two halves … ──▶ the bad line alone

Each request has an Idempotency-Key made from what it holds and where it stood, so that sending it
again, or importing the same file again, gives events without an id the same ids as before.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from penstock.base.backoff import Backoff
from penstock.cli.client import Client
from penstock.cli.fields import rows, text
from penstock.cli.lines import Batch
from penstock.cli.refused import Refused
from penstock.envelope.envelope import JsonObject

_PATH = "/v1/events"
_PAUSE = Backoff(base_s=0.2, max_s=5.0)
_ATTEMPTS = 10
_REFUSED = (400, 413, 422)


@dataclass(frozen=True, slots=True)
class Tally:
    """How the lines fared."""

    accepted: int = 0
    duplicate: int = 0
    rejected: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.accepted + other.accepted,
            self.duplicate + other.duplicate,
            self.rejected + other.rejected,
        )


class LinePoster:
    """Posts lines to one server."""

    def __init__(self, client: Client, sleep: Callable[[float], object] = time.sleep) -> None:
        self._client = client
        self._sleep = sleep

    def post(self, batch: Batch) -> Tally:
        """Post a batch; how its lines fared. Refused when the server stays away."""
        whole: list[bytes] = []
        tally = Tally()
        for place, line in enumerate(batch.lines, batch.first_line):
            if _is_one_value(line):
                whole.append(line)
            else:
                tally += self._alone(line, place)
        return tally + self._together(whole, batch.first_line)

    def _together(self, lines: Sequence[bytes], place: int) -> Tally:
        if len(lines) <= 1:
            return self._alone(lines[0], place) if lines else Tally()
        try:
            data = self._send(b"[" + b",".join(lines) + b"]", place)
        except Refused as refused:
            if refused.status not in _REFUSED:
                raise
            middle = len(lines) // 2
            first, second = lines[:middle], lines[middle:]
            return self._together(first, place) + self._together(second, place + middle)
        states = [text(result, "status") for result in rows(data, "results")]
        return Tally(*(states.count(word) for word in ("accepted", "duplicate", "rejected")))

    def _alone(self, line: bytes, place: int) -> Tally:
        try:
            status = text(self._send(line, place), "status")
        except Refused as refused:
            if refused.status not in _REFUSED:
                raise
            return Tally(rejected=1)
        return Tally(duplicate=1) if status == "duplicate" else Tally(accepted=1)

    def _send(self, body: bytes, place: int) -> JsonObject:
        key = f"import-{place}-{hashlib.sha256(body).hexdigest()[:32]}"
        attempt = 0
        while True:
            try:
                return self._client.post_raw(_PATH, body, {"idempotency-key": key})
            except Refused as refused:
                attempt += 1
                if not refused.passes or attempt >= _ATTEMPTS:
                    raise
                pause_s = _PAUSE.delay_s(attempt, random.SystemRandom())
                self._sleep(max(pause_s, refused.retry_after_s or 0.0))


def _is_one_value(line: bytes) -> bool:
    """Whether a line can stand in an array without changing what stands beside it."""
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True
