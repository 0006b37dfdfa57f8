"""The short form of the acting campaign: real worker processes die while events flow."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.house.inline import JOBS, Acting, InProcess, acting, record, step
from tests.prove.acting import SOURCE, Claims, Crew, strike
from tests.prove.product import Product

from penstock.base.ids import uuid7
from penstock.base.on_postgres import EmbeddedPostgres

pytestmark = pytest.mark.prove


@pytest.fixture
def product(server: EmbeddedPostgres, template: str, tmp_path: Path) -> Iterator[InProcess]:
    """A server that only stores: whatever acts is a worker process."""
    with acting(server, template, tmp_path, acts=False) as found:
        yield found


@contextmanager
def working(product: InProcess, folder: Path, count: int, **settings: str) -> Iterator[Crew]:
    """So many `penstock worker` processes on its database, started again when they die."""
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")},
        "PENSTOCK_DATA_DIR": str(folder / "worker"),
        "PENSTOCK_DATABASE_URL": product.database,
        "PENSTOCK_EVENTS_MODE": "inline",
        "PENSTOCK_JOBS": str(JOBS),
        **settings,
    }
    crew = Crew(folder, environment, count)
    try:
        yield crew
    finally:
        codes = crew.close()
    assert set(codes) <= {0, -signal.SIGTERM}, crew.talk()  # the latter when it had only begun


def storm(product: InProcess, claims: Claims, crew: Crew, *, kills: int) -> None:
    """Let events flow, and kill a worker at a random instant after each lot has begun."""
    rng = random.Random(kills)
    for _ in range(kills):
        before = claims.launched()
        claims.publish(150)
        product.until(lambda before=before: claims.launched() > before)  # type: ignore[misc]
        time.sleep(rng.uniform(0.0, 0.3))  # the instant of the kill, not a wait for anything
        product.until(lambda: strike(crew.pids(), rng))
    claims.publish(100)
    claims.settle(within_s=90)


def check(product: InProcess, claims: Claims) -> None:
    """Exactly one run for each matching event, and the past can be run again."""
    assert claims.check()["published"] == claims.published
    for trigger_id in claims.triggers.values():
        assert product.house.trigger_record.backtest("default", trigger_id).equals_record


def test_every_matching_event_has_exactly_one_run_though_the_worker_is_killed(
    product: InProcess, tmp_path: Path
) -> None:
    claims = Claims(product, tmp_path / "marks")
    claims.define()

    with working(product, tmp_path, 1) as crew:
        storm(product, claims, crew, kills=2)

    check(product, claims)


def test_two_workers_at_once_do_the_same_and_survive_a_step_that_kills_them(
    product: InProcess, tmp_path: Path
) -> None:
    claims, poison = Claims(product, tmp_path / "marks"), tmp_path / "poison"
    claims.define()
    product.workflow("poison", step("a", "prove.die", parameters={"file": str(poison)}))
    product.trigger("poison", eventSource="poison")

    with working(product, tmp_path, 2) as crew:
        product.publish(record("a", "poison"))
        storm(product, claims, crew, kills=2)
        (run,) = product.ended("poison", 1, within_s=90)

    check(product, claims)
    found = product.steps(run["id"])["a"]
    assert (run["status"], found["failureReason"]) == ("failed", "worker_lost")
    assert "died" in found["errorMessage"]
    assert 1 <= len(poison.read_text().splitlines()) <= 5


def test_paused_work_waits_for_a_killed_worker_too_and_is_judged_in_order(
    product: InProcess, tmp_path: Path
) -> None:
    product.workflow("order", step("a"))
    spec: dict[str, Any] = {
        "eventSource": SOURCE, "maxConcurrency": 1,
        "parameterTemplate": {"key": "{{ event.payload.key }}"},
    }  # fmt: skip
    trigger_id = product.trigger("order", **spec)
    with working(product, tmp_path, 1) as crew:
        product.post(f"/admin/triggers/{trigger_id}/pause")
        product.publish(*(record(f"k{n}", SOURCE) for n in range(10)))
        product.until(lambda: len(product.deliveries("order", trigger_id)) == 10)
        product.post(f"/admin/sources/{SOURCE}/pause")
        product.publish(*(record(f"k{n}", SOURCE) for n in range(10, 20)))
        assert strike(crew.pids(), random.Random(3))
        product.post(f"/admin/triggers/{trigger_id}/resume")
        product.ended("order", 10)
        product.post(f"/admin/sources/{SOURCE}/resume")
        runs = product.ended("order", 20)

    assert [run["parameters"]["key"] for run in runs] == [f"k{n}" for n in range(20)]
    assert product.house.trigger_record.backtest("default", trigger_id).equals_record


def test_handlers_that_never_return_cost_their_worker_a_restart_and_no_other_step_anything(
    product: InProcess, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    product.workflow("never", step("a", "prove.never", timeoutMs=1_000))
    product.workflow("bystander", step("a", "prove.mark", parameters={"file": str(marks)}))
    product.trigger("never", eventSource="never")
    product.trigger("bystander", eventSource=SOURCE)
    with working(product, tmp_path, 1) as crew:
        product.publish(*(record("a", "never") for _ in range(8)))
        product.until(lambda: len(product.runs("never", "failed")) == 8)
        product.publish(*(record("a", SOURCE) for _ in range(20)))
        runs = product.ended("bystander", 20, within_s=60)
        product.until(lambda: crew.deaths == 1)

    assert {each["status"] for each in runs} == {"succeeded"}
    assert len({line.split()[1] for line in marks.read_text().splitlines()}) <= 2


def said(product: Acting, events: list[dict[str, Any]]) -> bool:
    """Whether they were taken; while the server is restarted they are not, and are said again."""
    try:
        return product.client.post("/v1/events", json=events).status_code == 202
    except httpx.HTTPError:
        return False


def test_inline_mode_survives_handlers_that_never_return_too() -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-prove-") as folder:
        running = Product(Path(folder), PENSTOCK_EVENTS_MODE="inline", PENSTOCK_JOBS=str(JOBS))
        try:
            running.start()
            product, marks = Acting(running.client), Path(folder) / "marks"
            never = step("a", "prove.never", timeoutMs=1_000)
            product.workflow("never", never)
            product.workflow("bystander", step("a", "prove.mark", parameters={"file": str(marks)}))
            product.trigger("never", eventSource="never")
            product.trigger("bystander", eventSource=SOURCE)
            product.publish(*(record("a", "never") for _ in range(24)))
            running.wait(lambda: len(product.runs("never", "failed")) == 24, "all time out")
            for _ in range(5):
                some = [record("a", SOURCE, id=uuid7()) for _ in range(4)]
                running.wait(lambda: said(product, some), "they are taken", within_s=60)
                time.sleep(1)  # so that whoever is to be restarted has been
            running.wait(lambda: len(product.runs("bystander")) == 20, "all are launched")
            running.wait(
                lambda: not product.runs("bystander", "pending", "running"), "all have ended"
            )

            assert {each["status"] for each in product.runs("bystander")} == {"succeeded"}
            assert running.stop() == 0
        finally:
            running.end()
