"""A DAG run is launched once, followed to its end, and found again after every interruption."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.workflows.launch.support import (
    Answer,
    Book,
    Heard,
    Receiver,
    call,
    outbound,
    receiver,
    service,
)

from penstock.base.clock import FixedClock
from penstock.workflows.launch.airflow import Airflow, run_id
from penstock.workflows.port import Failed, StepCall, Succeeded, Waiting

NOW = datetime(2026, 3, 1, 10, 30, tzinfo=UTC)


@dataclass
class Dags:
    """Airflow as far as we speak to it: one DAG, its runs, and their states."""

    states: dict[str, str] = field(default_factory=dict)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    loses_answers: bool = False

    def __call__(self, heard: Heard) -> Answer | None:
        if not heard.path.startswith("/api/v2/dags/daily/dagRuns"):
            return 404, {}, b'{"detail": "no such DAG"}'
        if heard.method == "POST":
            body = json.loads(heard.body)
            self.bodies.append(body)
            if body["dag_run_id"] in self.states:
                return 409, {}, b"{}"
            self.states[body["dag_run_id"]] = "queued"
            return None if self.loses_answers else (200, {}, b'{"state": "queued"}')
        run = heard.path.rpartition("/")[2]
        if run not in self.states:
            return 404, {}, b"{}"
        if heard.method == "PATCH":
            self.states[run] = json.loads(heard.body)["state"]
        return 200, {}, json.dumps({"dag_run_id": run, "state": self.states[run]}).encode()


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


@pytest.fixture
def dags(there: Receiver) -> Dags:
    there.answer = dags = Dags()
    return dags


@pytest.fixture
def airflow(there: Receiver) -> Airflow:
    book = Book(service("airflow", there.url, headers={"authorization": {"secret": "t"}}))
    secrets = lambda _tenant, _name: ("Bearer t-1",)  # noqa: E731
    return Airflow(outbound("127.0.0.1/32"), book, secrets, clock=FixedClock(NOW))


def step(dag: str = "daily", **said: Any) -> StepCall:
    given = {"dagId": dag, "conf": {"city": "Ulm"}, "pollSeconds": 7}
    return call("airflow", given, kind="airflow", started_at=said.pop("started_at", NOW), **said)


def test_a_run_is_launched_and_followed_to_its_end(
    there: Receiver, dags: Dags, airflow: Airflow
) -> None:
    waiting = airflow.run(step())

    assert waiting == Waiting(7.0, {"runId": "run-1-step-1"})
    assert dags.bodies == [
        {"dag_run_id": "run-1-step-1", "conf": {"city": "Ulm"}, "logical_date": None}
    ]
    assert there.heard[0].headers["authorization"] == "Bearer t-1"

    assert airflow.run(step(token=waiting.token)) == waiting  # type: ignore[union-attr]
    dags.states["run-1-step-1"] = "success"
    done = airflow.run(step(token={"runId": "run-1-step-1"}))
    assert done == Succeeded({"dagId": "daily", "runId": "run-1-step-1", "state": "success"})


def test_a_failed_run_is_a_failed_step(dags: Dags, airflow: Airflow) -> None:
    airflow.run(step())
    dags.states["run-1-step-1"] = "failed"

    result = airflow.run(step(token={"runId": "run-1-step-1"}))

    assert isinstance(result, Failed)
    assert (result.reason, result.retryable) == ("remote_failed", True)


def test_a_launch_that_was_heard_but_not_answered_is_found_again(
    dags: Dags, airflow: Airflow
) -> None:
    dags.loses_answers = True
    lost = airflow.run(step())
    assert isinstance(lost, Failed)
    assert lost.retryable
    dags.loses_answers = False

    again = airflow.run(step(attempt=2))

    assert again == Waiting(7.0, {"runId": "run-1-step-1"})
    assert list(dags.states) == ["run-1-step-1"]


def test_the_same_attempt_launched_twice_is_one_run(dags: Dags, airflow: Airflow) -> None:
    assert airflow.run(step()) == airflow.run(step())
    assert len(dags.states) == 1


def test_after_a_failed_run_the_next_attempt_is_a_new_one(dags: Dags, airflow: Airflow) -> None:
    airflow.run(step())
    dags.states["run-1-step-1"] = "failed"

    assert airflow.run(step(attempt=2)) == Waiting(7.0, {"runId": "run-1-step-1-2"})
    assert airflow.run(step(attempt=4)) == Waiting(7.0, {"runId": "run-1-step-1-2"})


@pytest.mark.parametrize("status", [500, 503, 429])
def test_while_it_runs_a_silent_airflow_is_asked_again(
    there: Receiver, airflow: Airflow, status: int
) -> None:
    token = {"runId": "r"}
    there.says(status)
    assert airflow.run(step(token=token)) == Waiting(7.0, token)
    there.answer = lambda _heard: None
    assert airflow.run(step(token=token)) == Waiting(7.0, token)
    there.says(200, b"<html>")
    assert airflow.run(step(token=token)) == Waiting(7.0, token)


def test_a_run_that_takes_too_long_is_out_of_time(dags: Dags, airflow: Airflow) -> None:
    airflow.run(step())
    late = NOW - timedelta(seconds=11)

    result = airflow.run(step(token={"runId": "run-1-step-1"}, started_at=late))

    assert isinstance(result, Failed)
    assert result.reason == "timed_out"


def test_a_run_whose_workflow_run_is_over_is_ended_unless_it_is_over_itself(
    there: Receiver, dags: Dags, airflow: Airflow
) -> None:
    airflow.run(step())
    token = {"runId": "run-1-step-1"}

    stopped = airflow.stop_elsewhere(step(token=token))
    again = airflow.stop_elsewhere(step(token=token))
    dags.states["run-1-step-1"] = "success"
    late = airflow.stop_elsewhere(step(token=token))

    assert [each.reason for each in (stopped, again, late)] == ["canceled"] * 3  # type: ignore[union-attr]
    assert dags.states["run-1-step-1"] == "success"
    assert [heard.method for heard in there.heard] == ["POST", "GET", "PATCH", "GET", "GET"]
    assert isinstance(airflow.stop_elsewhere(step(token={"runId": "gone"})), Failed)
    assert isinstance(airflow.stop_elsewhere(step()), Failed)


def test_an_airflow_that_does_not_answer_is_told_again_until_the_step_is_out_of_time(
    there: Receiver, airflow: Airflow
) -> None:
    token = {"runId": "r"}
    there.says(503)
    assert airflow.stop_elsewhere(step(token=token)) == Waiting(7.0, token)
    there.answer = lambda _heard: None
    assert airflow.stop_elsewhere(step(token=token)) == Waiting(7.0, token)

    late = airflow.stop_elsewhere(step(token=token, started_at=NOW - timedelta(seconds=11)))
    there.says(403)
    refused = airflow.stop_elsewhere(step(token=token))

    for result in (late, refused):
        assert isinstance(result, Failed)
        assert result.reason == "canceled"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (step("another"), "request_failed"),
        (step(token={"runId": "gone"}), "remote_failed"),
        (step("../../evil"), "address_refused"),
    ],
)
def test_what_is_not_there_fails(dags: Dags, airflow: Airflow, said: StepCall, reason: str) -> None:
    result = airflow.run(said)

    assert isinstance(result, Failed)
    assert result.reason == reason


def test_airflow_2_is_spoken_to_in_its_own_way(there: Receiver) -> None:
    there.says(200, b'{"state": "queued"}')
    book = Book(service("airflow", there.url, metadata={"apiPath": "/api/v1"}))
    airflow = Airflow(outbound("127.0.0.1/32"), book, lambda _tenant, _name: ())

    airflow.run(step())

    assert there.heard[0].path == "/api/v1/dags/daily/dagRuns"
    assert "logical_date" not in json.loads(there.heard[0].body)


def test_any_key_becomes_an_id_that_airflow_takes() -> None:
    assert run_id("run:1-step_2", 1) == "run:1-step_2"
    assert run_id("a/b", 1).startswith("penstock-")
    assert run_id("a/b", 2) == f"{run_id('a/b', 1)}-2"
