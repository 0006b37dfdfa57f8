"""Let dead letters in again when they fit now; say why the others still do not.

    letter ── judge again ──▶ fits ──▶ settle (via redrive) ──▶ marked
                  └─────────▶ still fails, with today's reason

Harmless twice: an event brings its own id, or the one its Idempotency-Key stood for, or gets one
derived from its letter; so a second redrive, or the publisher's retry, finds it in the log.
`dry_run` judges and writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Protocol

from penstock.base.clock import Clock
from penstock.base.ids import derived_id
from penstock.ingress.lot import Intake, Judged, Lot
from penstock.ingress.pipeline import judge
from penstock.ingress.protect import NOTHING_PERSONAL, Protect
from penstock.ingress.rows import write
from penstock.ingress.verdict import Accepted, Arrival, Reason, Via
from penstock.registry.registry import Registry
from penstock.store.deadletters.letter import DeadLetter, LetterFilter, RedriveReport

_WRITER = "redrive"
_FAILING_MOST = 1_000
Known = Callable[[str, Sequence[str]], dict[str, bytes]]


class Letters(Protocol):
    """Where letters are read and marked."""

    def walk(self, tenant_id: str, which: LetterFilter) -> Iterator[list[DeadLetter]]: ...

    def mark_redriven(self, pairs: Sequence[tuple[str, str]], at: datetime) -> None: ...


class Redriver:
    """Judges letters again by today's registry."""

    def __init__(
        self,
        letters: Letters,
        *,
        open_intake: Callable[[], Intake],
        registry: Callable[[], Registry],
        known: Known,
        clock: Clock,
        protect: Protect = NOTHING_PERSONAL,
    ) -> None:
        self._letters = letters
        self._open_intake = open_intake
        self._registry = registry
        self._known = known
        self._clock = clock
        self._protect = protect

    def redrive(self, tenant_id: str, which: LetterFilter, *, dry_run: bool) -> RedriveReport:
        """Redrive what matches and fits, or say what would happen."""
        registry = self._registry()
        passing = redriven = failing = 0
        still: list[tuple[str, str]] = []
        for chunk in self._letters.walk(tenant_id, which):
            fits, failed = self._split(tenant_id, chunk, registry)
            passing += len(fits)
            failing += len(failed)
            still.extend(failed[: max(0, _FAILING_MOST - len(still))])
            if fits and not dry_run:
                redriven += self._let_in(fits, registry)
        return RedriveReport(passing, failing, redriven, still)

    def _split(
        self, tenant_id: str, chunk: Sequence[DeadLetter], registry: Registry
    ) -> tuple[list[tuple[DeadLetter, Accepted]], list[tuple[str, str]]]:
        fits: list[tuple[DeadLetter, Accepted]] = []
        failed: list[tuple[str, str]] = []
        for letter in chunk:
            verdict = judge(letter.raw, _arrival(letter), registry)
            if isinstance(verdict, Accepted):
                fits.append((letter, self._protect.keyed(verdict, registry)))
            else:
                failed.append((letter.id, verdict.reason))
        known = self._known(tenant_id, [accepted.envelope.id for _, accepted in fits])
        clash = [
            (letter, accepted)
            for letter, accepted in fits
            if known.get(accepted.envelope.id, accepted.content_hash) != accepted.content_hash
        ]
        failed.extend((letter.id, Reason.ID_CONFLICT) for letter, _ in clash)
        return [pair for pair in fits if pair not in clash], failed

    def _let_in(self, fits: Sequence[tuple[DeadLetter, Accepted]], registry: Registry) -> int:
        judged = [Judged(letter.raw, accepted) for letter, accepted in fits]
        written = write(self._protect.hide(judged, registry))
        intake = self._open_intake()
        try:
            receipt = intake.settle(Lot(writer=_WRITER, messages=written))
        finally:
            intake.close()
        pairs = [(letter.id, accepted.envelope.id) for letter, accepted in fits]
        self._letters.mark_redriven(pairs, self._clock.now())
        return receipt.stored


def _arrival(letter: DeadLetter) -> Arrival:
    at_ms = round(letter.first_seen_at.timestamp() * 1000)
    return Arrival(
        accepted_at=letter.first_seen_at,
        fallback_id=letter.event_id or derived_id(at_ms, "redrive", letter.id),
        via=Via.REDRIVE,
        tenant_id=letter.tenant_id,
    )
