"""Review a proposed version before it is registered, and say who and what it would break.

    schema before it ── compare ──▶ differences ─┐
    stored events ───── gather ───▶ evidence ────┼──▶ Review: verdict, breaking or not, in sentences
    triggers, steps ─── reading ──▶ readers ─────┘

A version is breaking when payloads that fitted before may not fit now, when stored events would
not fit (after their upcasters), or when something is known to read a field that is gone. Personal
fields that are stored hidden are not tried.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from penstock.base.clock import Clock, SystemClock
from penstock.base.errors import Fault, SchemaBreaking
from penstock.envelope.envelope import JsonObject
from penstock.registry.compatibility import breaks, compare, verdict
from penstock.registry.difference import Change, Difference
from penstock.registry.evidence import (
    Evidence,
    KeptPayload,
    StoredPayloads,
    Window,
    counted,
    gather,
)
from penstock.registry.hidden import seen
from penstock.registry.proposal import Proposal, check, number_of, publishes, version_before
from penstock.registry.readers import NoReaders, Reader, Readers
from penstock.registry.registry import Registry
from penstock.registry.schema import PayloadCheck, SchemaVersion, schema_hash
from penstock.registry.upcast import UpcastFailed

DAYS_DEFAULT = 30
_LOST = (Change.REMOVED, Change.RETYPED)  # readers of such a field find nothing, or another thing


@dataclass(frozen=True, slots=True)
class Review:
    """What registering a proposal would mean."""

    event_type: str
    version: int
    before: int | None  # the version it was compared with; None: it is the first
    differences: tuple[Difference, ...] = ()
    evidence: Evidence | None = None
    readers: tuple[Reader, ...] = ()

    @property
    def is_breaking(self) -> bool:
        """Whether registering it needs an override."""
        return bool(breaks(self.differences) or self.failing or self.readers)

    @property
    def failing(self) -> int:
        """How many stored events would not fit."""
        return self.evidence.failing if self.evidence is not None else 0

    @property
    def sentences(self) -> list[str]:
        """The whole review in plain words."""
        if self.before is None:
            return [f"{self.event_type} has no published version to compare with"]
        said = [each.sentence for each in self.differences] or ["nothing differs"]
        if self.evidence is not None and not self.failing:
            said.append(self.evidence.sentence)
        return said + self.beside

    @property
    def beside(self) -> list[str]:
        """What breaks that the schemas alone do not show."""
        failing = [self.evidence.sentence] if self.evidence is not None and self.failing else []
        return [*failing, *(f"the {r.kind} {r.name} reads {r.pointer}" for r in self.readers)]

    def refusal(self) -> SchemaBreaking:
        """The error that registering it without an override is."""
        broken = breaks(self.differences)
        faults = [Fault(each.pointer, each.detail) for each in broken]
        faults += [
            Fault(group.pointer, f"{group.detail}, in {counted(group.events)} stored")
            for group in (self.evidence.groups if self.evidence is not None else ())
        ]
        faults += [
            Fault(reader.pointer, f"is read by the {reader.kind} {reader.name}")
            for reader in self.readers
        ]
        said = [*(each.sentence for each in broken[:5]), *self.beside]
        detail = f"expected a schema compatible with {self.event_type} version {self.before}"
        return SchemaBreaking(f"{detail}, found that {'; '.join(said)}", faults=tuple(faults))

    def wire(self) -> JsonObject:
        """The review as the API shows it."""
        return {
            "eventType": self.event_type,
            "version": self.version,
            "comparedWith": self.before,
            "verdict": "first" if self.before is None else verdict(self.differences),
            "breaking": self.is_breaking,
            "differences": [each.wire() for each in self.differences],
            "storedEvents": None if self.evidence is None else self.evidence.wire(),
            "readers": [each.wire() for each in self.readers],
            "sentences": [*self.sentences],
        }


class Reviewer:
    """Reviews proposals against the registry, the stored events and whoever reads them."""

    def __init__(
        self,
        registry: Callable[[], Registry],
        stored: StoredPayloads,
        *,
        readers: Callable[[str], Readers] = lambda _tenant_id: NoReaders(),
        clock: Clock | None = None,
        seconds: Callable[[], float] = time.monotonic,
        as_stored: Callable[[JsonObject], JsonObject] = lambda schema: schema,
    ) -> None:
        self._registry = registry
        self._stored = stored
        self._readers = readers  # as a tenant may know of them
        self._clock = clock or SystemClock()
        self._seconds = seconds
        self._as_stored = as_stored  # what is stored of a payload may differ from what was sent

    def review(self, proposal: Proposal, *, tenant_id: str, days: int = DAYS_DEFAULT) -> Review:
        """What registering the proposal would mean; SchemaInvalid when it could not be at all."""
        check(proposal)
        registry = self._registry()
        existing = registry.versions_of(proposal.event_type)
        number = number_of(existing, proposal)
        before = _compared_with(existing, number)
        if before is None:
            return Review(proposal.event_type, number, None)
        if before.schema_hash == schema_hash(proposal.schema):
            return Review(proposal.event_type, number, before.version)
        differences = compare(before.schema, proposal.schema)
        lost = [each.pointer for each in differences if each.change in _LOST]
        return Review(
            proposal.event_type,
            number,
            before.version,
            differences,
            self._gather(proposal, number, registry, tenant_id, days),
            tuple(self._readers(tenant_id).reading(proposal.event_type, lost)) if lost else (),
        )

    def admit(self, proposal: Proposal, *, tenant_id: str) -> Proposal:
        """The proposal as it may be registered; SchemaBreaking when it may not be.

        What breaks beside the schema is put into its override, to be kept with the version.
        """
        check(proposal)
        if not publishes(self._registry().versions_of(proposal.event_type), proposal):
            return proposal
        review = self.review(proposal, tenant_id=tenant_id)
        if proposal.override is not None:
            return replace(proposal, override=replace(proposal.override, also=(*review.beside,)))
        if review.is_breaking:
            raise review.refusal()
        return proposal

    def _gather(
        self, proposal: Proposal, number: int, registry: Registry, tenant_id: str, days: int
    ) -> Evidence:
        proposed = PayloadCheck(self._as_stored(proposal.schema))
        climb = registry.upcasts.climb

        def faults_of(kept: KeptPayload) -> tuple[Fault, ...]:
            brought = climb(proposal.event_type, kept.payload, kept.schema_version, number)
            if isinstance(brought, UpcastFailed):
                return (Fault("", brought.detail),)
            payload = kept.payload if brought is None else brought.payload
            return seen(proposed.faults(payload), payload)

        window = Window(self._clock.now() - timedelta(days=days), days)
        return gather(
            self._stored, faults_of, window, tenant_id=tenant_id,
            event_type=proposal.event_type, seconds=self._seconds,
        )  # fmt: skip


def _compared_with(existing: list[SchemaVersion], number: int) -> SchemaVersion | None:
    """The version of that number when it is published already, else the one before it."""
    held = next((each for each in existing if each.version == number), None)
    if held is not None and held.status != "draft":
        return held
    return version_before(existing, number)
