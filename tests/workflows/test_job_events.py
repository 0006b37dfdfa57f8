"""Every execution of a step is an event that fits its type, named so that a repeat is the same."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.catalog.vocabularies import ALL
from penstock.envelope.codec import encode
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Accepted, Arrival
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.workflows.engine.changes import job_event, job_run_row
from penstock.workflows.port import Failed, Failure, StepResult, Succeeded
from penstock.workflows.queue.job import Claimed, Ended
from penstock.workflows.run import RunStatus

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def ended(result: StepResult, number: int = 1) -> Ended:
    claimed = Claimed(
        7, 1, "run-1", "load[3]", number, number, 0, None, AT, AT, AT, "load", {}, "acme",
        RunStatus.RUNNING, "wf-1", 1, None, "order-1", "event-1",
    )  # fmt: skip
    return Ended(claimed, "function", "load-weather", "w", result)


@pytest.mark.parametrize(
    ("result", "status"),
    [
        (Succeeded({"rows": 1}), "succeeded"),
        (Failed(Failure.HANDLER_ERROR, "disk full"), "failed"),
        (Failed(Failure.TIMED_OUT, "too long"), "expired"),
        (Failed(Failure.CANCELED, "called off"), "canceled"),
    ],
)
def test_the_end_of_an_execution_is_an_event_of_its_run(result: StepResult, status: str) -> None:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    said = ended(result)

    event = job_event(said, job_run_row(said))

    verdict = judge(encode(event), Arrival(AT), book.current())
    assert isinstance(verdict, Accepted), verdict
    assert event["type"] == f"job.run.{status}"
    assert (event["correlationId"], event["causationId"]) == ("order-1", "event-1")
    assert verdict.envelope.tenant_id == "acme"


def test_another_attempt_is_another_event_and_the_same_one_is_the_same() -> None:
    first, again, second = ended(Succeeded({})), ended(Succeeded({})), ended(Succeeded({}), 2)

    ids = [job_event(each, job_run_row(each))["id"] for each in (first, again, second)]

    assert ids[0] == ids[1] != ids[2]
