"""Hold the workflow context to its way through tasks, threads, processes and metadata."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import ValidationError

from penstock.envelope.context import (
    VARIABLE,
    WorkflowContext,
    carry,
    dropped_contexts,
    get_workflow_event_context,
    inject,
    to_environment,
    workflow_event_context,
)

WIRE: dict[str, Any] = {
    "workflowDefinitionId": "def",
    "workflowRunId": "run",
    "workflowRunStepId": "step",
    "jobRunId": "job-run",
    "jobSlug": "slug",
}


def context(run: str = "run", **more: str) -> WorkflowContext:
    return WorkflowContext.model_validate({**WIRE, "workflowRunId": run, **more})


@pytest.fixture(autouse=True)
def _no_inherited_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def test_without_a_workflow_there_is_no_context() -> None:
    assert get_workflow_event_context() is None
    assert to_environment(None) == {}
    assert inject({"a": 1}, None) == {"a": 1}


def test_a_context_holds_inside_its_block_and_the_former_one_after_it() -> None:
    with workflow_event_context(context("outer")):
        with workflow_event_context(context("inner")):
            assert get_workflow_event_context() == context("inner")
        assert get_workflow_event_context() == context("outer")
    assert get_workflow_event_context() is None


def test_a_context_ends_with_a_step_that_fails_so_that_a_retry_starts_clean() -> None:
    with pytest.raises(RuntimeError), workflow_event_context(context()):
        raise RuntimeError

    assert get_workflow_event_context() is None


def test_fields_are_trimmed_and_none_may_be_blank() -> None:
    assert context(jobSlug="  slug ") == context(jobSlug="slug")
    for value in ("", "  ", None, 7):
        with pytest.raises(ValidationError):
            WorkflowContext.model_validate({**WIRE, "jobSlug": value})


def test_concurrent_tasks_see_each_its_own_context() -> None:
    async def step(run: str) -> str:
        with workflow_event_context(context(run)):
            await asyncio.sleep(0)
            current = get_workflow_event_context()
            assert current is not None
            return current.workflow_run_id

    async def fan_out() -> list[str]:
        return await asyncio.gather(*(step(str(n)) for n in range(20)))

    assert asyncio.run(fan_out()) == [str(n) for n in range(20)]


def test_a_new_thread_starts_without_a_context_unless_it_is_carried() -> None:
    seen: list[WorkflowContext | None] = []

    def look() -> None:
        seen.append(get_workflow_event_context())

    with workflow_event_context(context()):
        for target in (look, carry(look)):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()

    assert seen == [None, context()]


def test_a_pool_that_is_shared_by_runs_keeps_them_apart() -> None:
    def look() -> str:
        current = get_workflow_event_context()
        return "none" if current is None else current.workflow_run_id

    with ThreadPoolExecutor(2) as pool:
        futures = []
        for n in range(20):
            with workflow_event_context(context(str(n))):
                futures.append(pool.submit(carry(look)))
        after = pool.submit(look)

    assert [future.result() for future in futures] == [str(n) for n in range(20)]
    assert after.result() == "none"


def test_a_child_process_reads_the_context_it_was_started_with() -> None:
    program = (
        "from penstock.envelope.context import get_workflow_event_context as get;"
        "print(get().workflow_run_id)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        env=to_environment(context("child")),
        capture_output=True,
        check=True,
        text=True,
    )

    assert done.stdout == "child\n"


def test_the_context_of_the_block_wins_over_the_one_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, json.dumps(WIRE | {"workflowRunId": "process"}))

    assert get_workflow_event_context() == context("process")
    with workflow_event_context(context("block")):
        assert get_workflow_event_context() == context("block")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "7", '"x"', "{}", json.dumps(WIRE | {"jobSlug": " "}), "\udcff{}"],
)
def test_a_variable_that_says_no_context_means_none(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, text)

    assert get_workflow_event_context() is None


def test_what_else_the_variable_says_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, json.dumps(WIRE | {"workflowRunKey": "key", "other": {"x": 1}}))

    assert get_workflow_event_context() == context(workflowRunKey="key")


def test_a_context_over_two_kilobytes_is_dropped_counted_and_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = context(jobSlug="é" * 1024)
    before = dropped_contexts()

    with caplog.at_level(logging.WARNING):
        assert inject({"a": 1}, large) == {"a": 1}
        assert to_environment(large) == {}
        monkeypatch.setenv(VARIABLE, json.dumps(WIRE | {"jobSlug": "x" * 2048}))
        assert get_workflow_event_context() is None

    assert dropped_contexts() == before + 3
    assert len(caplog.records) == 3
    assert "expected at most 2048 bytes" in caplog.text


def test_a_context_of_just_two_kilobytes_is_carried() -> None:
    spare = 2048 - len(json.dumps(WIRE | {"jobSlug": ""}, separators=(",", ":")))

    assert inject({}, context(jobSlug="x" * spare)) != {}
    assert inject({}, context(jobSlug="x" * (spare + 1))) == {}


def test_the_context_is_injected_only_where_metadata_names_no_workflow() -> None:
    own: dict[str, Any] = {"__apphubWorkflow": {"jobSlug": "own"}}
    metadata: dict[str, Any] = {"region": "eu"}

    assert inject(metadata, context()) == {"region": "eu", "__apphubWorkflow": WIRE}
    assert metadata == {"region": "eu"}
    assert inject(own, context()) == own
