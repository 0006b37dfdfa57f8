"""A job in a process of its own ends as a result or a reason, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from tests.workflows.launch.support import call, wait_until

from penstock.envelope.envelope import JsonObject
from penstock.workflows.launch.functions import Command, make_job
from penstock.workflows.launch.registry import Jobs
from penstock.workflows.launch.sandbox.limits import Limits, Surroundings
from penstock.workflows.launch.sandbox.over_pipe import Sandbox
from penstock.workflows.port import Failed, StepCall, StepResult, Succeeded


@pytest.fixture
def sandbox(jobs: Jobs) -> Sandbox:
    return Sandbox(jobs, limits=Limits(grace_s=0.3))


def step(slug: str, said: JsonObject | None = None, **changed: object) -> StepCall:
    return call(slug, said, kind="subprocess", **{"timeout_s": 60.0, **changed})


def failed(result: StepResult) -> Failed:
    assert isinstance(result, Failed), result
    return result


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_job_gets_its_parameters_and_gives_back_its_output(sandbox: Sandbox) -> None:
    numbers: JsonObject = {"numbers": [0.5] * 50_000}  # more than a pipe holds

    assert sandbox.run(step("add", numbers)) == Succeeded({"sum": 25_000.0}, "adding\n")


def test_an_awaited_job_runs_there_too(sandbox: Sandbox) -> None:
    assert sandbox.run(step("add_later", {"numbers": [1]})) == Succeeded({"sum": 1}, "adding\n")


def test_an_exception_there_is_a_failed_step_with_its_words(sandbox: Sandbox) -> None:
    result = failed(sandbox.run(step("fail")))

    assert (result.reason, result.retryable) == ("handler_error", True)
    assert result.detail == "ValueError: no such table"
    assert "Traceback" in (result.logs or "")


def test_a_job_there_may_say_that_trying_again_is_no_use(sandbox: Sandbox) -> None:
    assert not failed(sandbox.run(step("fail_for_good"))).retryable


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGABRT"])
def test_a_job_that_kills_its_process_fails_with_the_signal(sandbox: Sandbox, name: str) -> None:
    number = int(getattr(signal, name))

    result = failed(sandbox.run(step("kill_itself", {"signal": number})))

    assert (result.reason, result.retryable) == ("handler_error", True)
    assert name in result.detail


def test_a_job_that_crashes_its_interpreter_fails_with_the_signal(sandbox: Sandbox) -> None:
    assert "SIGSEGV" in failed(sandbox.run(step("crash"))).detail


@pytest.mark.parametrize(("code", "said"), [(7, "found 7"), (0, "ended without one")])
def test_a_job_that_leaves_by_the_back_door_fails(sandbox: Sandbox, code: int, said: str) -> None:
    result = failed(sandbox.run(step("exit_hard", {"code": code})))

    assert result.reason == "handler_error"
    assert said in result.detail


def test_a_job_that_prints_megabytes_is_kept_to_64_kb(sandbox: Sandbox) -> None:
    result = sandbox.run(step("print_megabytes"))

    assert isinstance(result, Succeeded)
    assert result.output == "printed"
    assert len(result.logs or "") < 66_000
    assert "more bytes were printed and dropped" in (result.logs or "")


def test_what_is_printed_need_not_be_text(sandbox: Sandbox) -> None:
    assert sandbox.run(step("print_bytes")) == Succeeded(None, "\ufffd\ufffd\ufffd ok\n")


@pytest.mark.parametrize("slug", ["wait_for_ever", "loop_for_ever"])
def test_a_job_that_never_returns_is_out_of_time(sandbox: Sandbox, slug: str) -> None:
    assert failed(sandbox.run(step(slug, timeout_s=1.0))).reason == "timed_out"


def test_what_a_job_leaves_behind_ends_with_it(sandbox: Sandbox, tmp_path: Path) -> None:
    file = tmp_path / "pids"

    result = sandbox.run(step("with_a_child", {"file": str(file)}))

    assert isinstance(result, Succeeded)
    pids = [int(pid) for pid in file.read_text().split()]
    assert len(pids) == 2
    wait_until(lambda: all(map(is_gone, pids)))


@pytest.mark.parametrize(("slug", "processes"), [("with_a_child", 2), ("stubborn", 1)])
def test_calling_off_ends_the_whole_group_even_a_stubborn_one(
    sandbox: Sandbox, tmp_path: Path, slug: str, processes: int
) -> None:
    file, results = tmp_path / "pids", list[StepResult]()
    job = step(slug, {"file": str(file), "stays": True})
    thread = threading.Thread(target=lambda: results.append(sandbox.run(job)))
    thread.start()
    wait_until(lambda: file.exists() and len(file.read_text().split()) == processes, 30)

    sandbox.cancel("somebody-else")
    sandbox.cancel("run-1-job")
    thread.join(10)

    assert (failed(results[0]).reason, failed(results[0]).retryable) == ("canceled", False)
    wait_until(lambda: all(is_gone(int(pid)) for pid in file.read_text().split()))


def test_a_job_dies_with_its_worker(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = (
        "import sys\n"
        "from penstock.workflows.launch.functions import make_job\n"
        "from penstock.workflows.launch.registry import Jobs\n"
        "from penstock.workflows.launch.sandbox.over_pipe import Sandbox\n"
        "from tests.workflows.launch.handlers import stubborn\n"
        "from tests.workflows.launch.support import call\n"
        "jobs = Jobs(lambda: ())\n"
        "jobs.add(make_job('stubborn', stubborn))\n"
        "Sandbox(jobs).run(call('stubborn', {'file': sys.argv[1]}, timeout_s=600.0))\n"
    )
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    worker = subprocess.Popen([sys.executable, "-c", code, str(file)], env={**os.environ, **path})
    try:
        wait_until(lambda: file.exists() and file.read_text(), 30)
    finally:
        worker.kill()
        worker.wait()

    wait_until(lambda: is_gone(int(file.read_text())))


def test_a_job_that_eats_memory_fails_alone(jobs: Jobs) -> None:
    sandbox = Sandbox(jobs, limits=Limits(memory_bytes=1 << 30))

    assert failed(sandbox.run(step("eat_memory"))).detail == "MemoryError"


def test_a_job_that_burns_its_cpu_time_is_stopped(jobs: Jobs) -> None:
    sandbox = Sandbox(jobs, limits=Limits(cpu_s=1))
    began = time.monotonic()

    result = failed(sandbox.run(step("burn")))

    assert "CPU time" in result.detail
    assert time.monotonic() - began < 50


@pytest.mark.parametrize("slug", ["no_json", "nan", "too_much", "too_deep"])
def test_an_output_that_is_not_json_or_too_much_is_refused(sandbox: Sandbox, slug: str) -> None:
    result = failed(sandbox.run(step(slug)))

    assert (result.reason, result.retryable) == ("output_invalid", False)


def test_the_workers_secrets_stay_with_the_worker(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", "postgresql://canary:canary@db/x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    given = Surroundings({"PENSTOCK_URL": "http://127.0.0.1:8700", "PENSTOCK_TOKEN": "pst_given"})

    result = Sandbox(jobs, surroundings=given).run(step("environment"))

    assert isinstance(result, Succeeded)
    assert isinstance(result.output, dict)
    assert "canary" not in repr(result.output)
    assert result.output["PENSTOCK_TOKEN"] == "pst_given"
    assert result.output["HOME"] == result.output["cwd"]
    assert not Path(str(result.output["cwd"])).exists()


def test_a_function_that_cannot_be_imported_is_refused(jobs: Jobs, sandbox: Sandbox) -> None:
    jobs.add(make_job("local", lambda _job: 1))

    assert "can import by name" in failed(sandbox.run(step("local"))).detail
    assert failed(sandbox.run(step("nobody"))).reason == "handler_unknown"
    assert failed(sandbox.run(step("add", {}))).reason == "input_invalid"


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo ignored; cat >&3", {"n": 1}),
        ("echo first; echo '{\"rows\": 3}'", {"rows": 3}),
        ("echo no json", None),
    ],
)
def test_a_registered_command_is_a_job_too(
    jobs: Jobs, sandbox: Sandbox, script: str, output: object
) -> None:
    picked = script.replace("cat >&3", "sed 's/.*/{\"n\": 1}/' >&3")
    jobs.add(Command("command", ("sh", "-c", picked)))

    result = sandbox.run(step("command", {"n": 1}))

    assert isinstance(result, Succeeded)
    assert result.output == output


def test_a_command_that_does_not_exist_fails(jobs: Jobs, sandbox: Sandbox) -> None:
    jobs.add(Command("missing", ("/nowhere/at/all",)))

    assert failed(sandbox.run(step("missing"))).reason == "handler_error"


def test_no_descriptor_is_left_behind(sandbox: Sandbox) -> None:
    sandbox.run(step("about"))
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    for _ in range(3):
        sandbox.run(step("about"))

    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
