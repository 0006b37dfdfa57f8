"""Open the rooms of triggers and workflows that the API and the command line stand on."""

from __future__ import annotations

from functools import cached_property

from penstock.base.on_postgres import Pool
from penstock.base.settings import Settings
from penstock.health.activity.on_postgres import ActivityReader
from penstock.house.acting import limits_of, open_trigger_host, plans_of
from penstock.house.database import Database
from penstock.triggers.book.deliveries.on_postgres import DeliveryBook
from penstock.triggers.book.figures.on_postgres import FigureBook
from penstock.triggers.book.on_postgres import TriggerBook
from penstock.triggers.host.on_postgres import TriggerHost
from penstock.triggers.host.record.on_postgres import TriggerRecord
from penstock.triggers.limits import Limits
from penstock.workflows.book.on_postgres import WorkflowBook
from penstock.workflows.engine.on_postgres import Plans


class ActingRooms:
    """What a house knows about triggers and workflows; a part of `House`, which has the pools."""

    settings: Settings
    database: Database
    owner: Pool

    @cached_property
    def limits(self) -> Limits:
        return limits_of(self.settings)

    @cached_property
    def plans(self) -> Plans:
        return plans_of(self.settings)

    @cached_property
    def trigger_book(self) -> TriggerBook:
        return TriggerBook(self.owner)

    @cached_property
    def trigger_desk(self) -> DeliveryBook:
        return DeliveryBook(self.owner)

    @cached_property
    def trigger_figures(self) -> FigureBook:
        return FigureBook(self.owner)

    @cached_property
    def trigger_record(self) -> TriggerRecord:
        return TriggerRecord(self.owner)

    @cached_property
    def trigger_host(self) -> TriggerHost:
        return open_trigger_host(self.database.dsn, self.settings, self.plans)

    @cached_property
    def workflow_book(self) -> WorkflowBook:
        return WorkflowBook(self.owner, self.plans)

    @cached_property
    def activity(self) -> ActivityReader:
        return ActivityReader(self.owner)
