"""One value runs every kind of step, and whatever breaks inside it is the step's failure."""

from __future__ import annotations

import pytest
from tests.workflows.launch.support import Book, call, receiver, service

from penstock.base.errors import SettingsInvalid
from penstock.workflows.launch.executors import ExecutorSettings, make_executors
from penstock.workflows.launch.registry import Jobs
from penstock.workflows.port import Executor, Failed, Service, Succeeded
from penstock.workflows.steps import Kind


def test_every_kind_of_step_has_its_executor(jobs: Jobs) -> None:
    made: Executor = make_executors(
        ExecutorSettings(), Book(), jobs=jobs, open_session=lambda: None
    )

    assert {*made.kinds} == {*Kind} - {Kind.FANOUT}  # type: ignore[attr-defined]


def test_a_call_goes_to_the_executor_of_its_kind(jobs: Jobs) -> None:
    with receiver() as there:
        there.says(200, b"[]")
        made = make_executors(
            ExecutorSettings(allowed_cidrs=("127.0.0.1/32",)),
            Book(service("here", there.url)),
            jobs=jobs,
        )
        numbers = {"numbers": [1]}

        results = [
            made.run(call("add", numbers)),  # type: ignore[arg-type]
            made.run(call("add", numbers, kind="subprocess")),  # type: ignore[arg-type]
            made.run(call("here", {"request": {"method": "GET"}}, kind="service")),
            made.run(call("webhook", {"url": there.url, "body": {}}, kind="webhook")),
        ]

    assert all(isinstance(result, Succeeded) for result in results), results
    made.cancel("nobody")
    made.close()


def test_a_kind_that_this_worker_does_not_run_may_run_elsewhere(jobs: Jobs) -> None:
    result = make_executors(ExecutorSettings(), Book(), jobs=jobs).run(call("x", kind="spark"))

    assert isinstance(result, Failed)
    assert (result.reason, result.retryable) == ("handler_unknown", True)


class BrokenBook:
    def service(self, tenant_id: str, slug: str) -> Service | None:
        raise RuntimeError(f"{tenant_id} {slug}: the book is shut")


def test_a_broken_executor_is_a_failed_step(jobs: Jobs) -> None:
    made = make_executors(ExecutorSettings(), BrokenBook(), jobs=jobs)

    result = made.run(call("weather", kind="service"))

    assert isinstance(result, Failed)
    assert (result.reason, result.retryable) == ("handler_error", True)


@pytest.mark.parametrize("kind", ["airflow", "webhook", "spark"])
def test_what_cannot_be_ended_elsewhere_is_only_called_off(jobs: Jobs, kind: str) -> None:
    made = make_executors(ExecutorSettings(), BrokenBook(), jobs=jobs)

    result = made.stop_elsewhere(call("weather", kind=kind, token={"runId": "r"}))

    assert isinstance(result, Failed)
    assert result.reason == "canceled"


def test_a_malformed_setting_stops_the_start() -> None:
    with pytest.raises(SettingsInvalid):
        make_executors(ExecutorSettings(allowed_cidrs=("everything",)), Book())


def test_a_worker_with_too_many_lost_handlers_says_so(jobs: Jobs) -> None:
    made = make_executors(ExecutorSettings(abandoned_max=1), Book(), jobs=jobs)
    assert not made.is_exhausted

    made.run(call("wait_for_ever", timeout_s=0.01))

    assert made.is_exhausted
    assert made.abandoned == 1


def test_only_inline_functions_run_in_the_workers_loop(jobs: Jobs) -> None:
    made = make_executors(ExecutorSettings(), Book(), jobs=jobs)

    assert made.is_inline(call("quick"))
    assert not made.is_inline(call("add"))
    assert not made.is_inline(call("quick", kind="subprocess"))
    assert not made.is_inline(call("nobody"))
