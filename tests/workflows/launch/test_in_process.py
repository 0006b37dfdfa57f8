"""A handler in the worker succeeds or fails with its reason, and never takes the worker along."""

from __future__ import annotations

import sys
import threading
import time

import pytest
from tests.workflows.launch.support import call, wait_until

from penstock.workflows.launch.functions import JobContext, make_job
from penstock.workflows.launch.in_process import InProcess
from penstock.workflows.launch.registry import Jobs
from penstock.workflows.port import Failed, StepResult, Succeeded, Waiting


def failure(result: StepResult) -> tuple[str, bool]:
    assert isinstance(result, Failed), result
    return result.reason, result.retryable


@pytest.mark.parametrize("slug", ["add", "add_later"])
def test_a_handler_gives_back_its_output(inside: InProcess, slug: str) -> None:
    result = inside.run(call(slug, {"numbers": [1, 2, 3.5]}))

    assert result == Succeeded({"sum": 6.5}, "adding\n")


def test_a_handler_knows_which_attempt_it_is(inside: InProcess) -> None:
    result = inside.run(call("about", {"a": 1}, attempt=3, correlation_id="c-1"))

    assert isinstance(result, Succeeded)
    assert result.output == {
        "attempt": 3,
        "key": "run-1-step-1",
        "parameters": {"a": 1},
        "correlation": "c-1",
        "stopping": False,
    }


def test_an_exception_is_a_failed_step_with_its_words_and_its_traceback(inside: InProcess) -> None:
    result = inside.run(call("fail"))

    assert failure(result) == ("handler_error", True)
    assert isinstance(result, Failed)
    assert result.detail == "ValueError: no such table"
    assert "handlers.py" in (result.logs or "")


def test_a_handler_may_say_that_trying_again_is_no_use(inside: InProcess) -> None:
    result = inside.run(call("fail_for_good"))

    assert failure(result) == ("handler_error", False)


def test_a_handler_that_exits_does_not_end_the_worker(inside: InProcess) -> None:
    assert failure(inside.run(call("leave"))) == ("handler_error", True)


def test_an_unknown_handler_is_named(inside: InProcess) -> None:
    result = inside.run(call("nobody"))

    assert failure(result) == ("handler_unknown", False)
    assert isinstance(result, Failed)
    assert "nobody" in result.detail


@pytest.mark.parametrize("said", [{}, {"numbers": ["one"]}])
def test_parameters_that_do_not_fit_the_schema_do_not_reach_the_handler(
    inside: InProcess, said: dict[str, object]
) -> None:
    result = inside.run(call("add", said))  # type: ignore[arg-type]

    assert failure(result) == ("input_invalid", False)


@pytest.mark.parametrize("slug", ["no_json", "nan", "too_much", "too_deep"])
def test_an_output_that_is_not_json_or_too_much_is_refused(inside: InProcess, slug: str) -> None:
    assert failure(inside.run(call(slug))) == ("output_invalid", False)


@pytest.mark.parametrize("slug", ["wait_for_ever", "loop_for_ever", "await_for_ever"])
def test_a_handler_that_never_returns_is_out_of_time(inside: InProcess, slug: str) -> None:
    began = time.monotonic()

    result = inside.run(call(slug, timeout_s=0.1))

    assert failure(result) == ("timed_out", True)
    assert time.monotonic() - began < 3
    assert inside.run(call("add", {"numbers": [1]})) == Succeeded({"sum": 1}, "adding\n")


@pytest.mark.parametrize("slug", ["loop_for_ever", "await_for_ever"])
def test_one_that_runs_python_is_really_stopped(inside: InProcess, slug: str) -> None:
    inside.run(call(slug, timeout_s=0.1))

    wait_until(lambda: inside.abandoned == 0)


def test_a_handler_that_looks_learns_that_its_time_is_over(jobs: Jobs, inside: InProcess) -> None:
    left = threading.Event()

    def polite(job: JobContext) -> None:
        job.stopping.wait()
        left.set()

    jobs.add(make_job("polite", polite))
    inside.run(call("polite", timeout_s=0.05))

    assert left.wait(5)
    wait_until(lambda: inside.abandoned == 0)


def test_a_handler_can_be_called_off(inside: InProcess) -> None:
    results: list[StepResult] = []
    thread = threading.Thread(
        target=lambda: results.append(inside.run(call("loop_for_ever", timeout_s=60)))
    )
    thread.start()
    wait_until(lambda: "run-1-job" in inside._running)

    inside.cancel("somebody-else")
    inside.cancel("run-1-job")
    thread.join(5)

    assert failure(results[0]) == ("canceled", False)


def test_a_handler_that_prints_megabytes_is_kept_to_64_kb(inside: InProcess) -> None:
    result = inside.run(call("print_megabytes"))

    assert isinstance(result, Succeeded)
    assert result.output == "printed"
    assert result.logs is not None
    assert len(result.logs) < 66_000
    assert f"{5_000_000 + 5 - 65_536} more bytes were printed and dropped" in result.logs


def test_a_handlers_prints_do_not_reach_the_workers_output(
    inside: InProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    inside.run(call("print_megabytes"))
    print("the worker's own")  # noqa: T201

    assert capsys.readouterr().out == "the worker's own\n"


def test_bytes_below_the_streams_are_kept_too(jobs: Jobs, inside: InProcess) -> None:
    def write(_job: JobContext) -> None:
        sys.stdout.buffer.write(b"raw\n")
        sys.stderr.flush()

    jobs.add(make_job("raw", write))

    assert inside.run(call("raw")) == Succeeded(None, "raw\n")


def test_with_too_many_left_behind_the_worker_takes_no_more(jobs: Jobs) -> None:
    gate = threading.Event()
    jobs.add(make_job("stuck", lambda _job: gate.wait()))
    inside = InProcess(jobs, abandoned_max=2)
    for _ in range(2):
        assert failure(inside.run(call("stuck", timeout_s=0.01))) == ("timed_out", True)

    refused = inside.run(call("add", {"numbers": []}))

    assert inside.is_exhausted
    assert isinstance(refused, Waiting), "no fault of the step, which loses no attempt"
    gate.set()
    wait_until(lambda: not inside.is_exhausted)
    assert isinstance(inside.run(call("add", {"numbers": []})), Succeeded)


def test_an_inline_handler_runs_in_the_callers_thread(jobs: Jobs, inside: InProcess) -> None:
    jobs.add(make_job("which", lambda _job: threading.current_thread().name, inline=True))

    result = inside.run(call("which"))

    assert result == Succeeded(threading.current_thread().name)
    assert failure(inside.run(call("quick", {"fails": True}))) == ("handler_error", True)


def test_threads_are_used_again(jobs: Jobs, inside: InProcess) -> None:
    jobs.add(make_job("which", lambda _job: threading.get_ident()))

    results = [inside.run(call("which")) for _ in range(20)]

    assert len({result.output for result in results if isinstance(result, Succeeded)}) == 1
