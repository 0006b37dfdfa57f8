"""Open the whole book of workflows over one pool: definitions, runs, schedules, services."""

from __future__ import annotations

from penstock.base.on_postgres import Pool
from penstock.workflows.book.definitions.on_postgres import DefinitionBook
from penstock.workflows.book.runs.on_postgres import RunReader
from penstock.workflows.book.schedules.on_postgres import ScheduleBook
from penstock.workflows.book.services.on_postgres import ServiceBook
from penstock.workflows.engine.acts.on_postgres import RunActs
from penstock.workflows.engine.on_postgres import Plans


class WorkflowBook:
    """Everything that is kept about workflows, by kind."""

    def __init__(self, pool: Pool, plans: Plans | None = None) -> None:
        self.definitions = DefinitionBook(pool)
        self.runs = RunReader(pool)
        self.schedules = ScheduleBook(pool)
        self.services = ServiceBook(pool)
        self.acts = RunActs(pool, plans)
