"""Join whoever reads fields of events, as one tenant may know of them.

its own triggers and steps ── by name ───┐
those of other tenants ─── unnamed ──────┴──▶ Readers, for the review of a proposed schema
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.registry.readers import Joined, Readers, Unnamed
from penstock.triggers.book.on_postgres import TriggerBook
from penstock.triggers.readers import TriggerReaders
from penstock.triggers.trigger import Trigger
from penstock.workflows.book.on_postgres import WorkflowBook
from penstock.workflows.readers import StepReaders


def readers_of(triggers: TriggerBook, workflows: WorkflowBook) -> Callable[[str], Readers]:
    """The readers that a tenant hears of."""

    def known_to(tenant_id: str) -> Readers:
        def its_own() -> list[Trigger]:
            return triggers.list(tenant_id)

        def others() -> list[Trigger]:
            return [each for each in triggers.list(None) if each.tenant_id != tenant_id]

        return Joined(
            TriggerReaders(its_own),
            StepReaders(its_own, workflows.definitions.list),
            Unnamed(TriggerReaders(others)),
            Unnamed(StepReaders(others, workflows.definitions.list)),
        )

    return known_to
