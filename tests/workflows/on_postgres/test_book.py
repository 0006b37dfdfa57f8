"""The book keeps every version, shows runs as they are, and keeps tenants apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.workflows.on_postgres.support import (
    CHAIN,
    TENANT,
    Handlers,
    Shop,
    step,
    wait_for,
    workflow,
)

from penstock.base.errors import NotFound
from penstock.workflows.book.conflict import WorkflowChanged, WorkflowConflict
from penstock.workflows.book.on_postgres import WorkflowBook
from penstock.workflows.errors import WorkflowInvalid
from penstock.workflows.port import Failed, Failure, Service

DAY = timedelta(days=1)


@pytest.fixture
def book(shop: Shop) -> WorkflowBook:
    return WorkflowBook(shop.pool)


def test_every_version_is_kept_and_a_change_of_nothing_adds_none(book: WorkflowBook) -> None:
    first = book.definitions.create(TENANT, CHAIN, by="ana")
    same = book.definitions.change(TENANT, "chain", CHAIN, by="ben")
    other = book.definitions.change(TENANT, "chain", {**CHAIN, "name": "other"}, by="ben")

    assert (first.version, same.version, other.version) == (1, 1, 2)
    assert [w.version for w in book.definitions.versions(TENANT, "chain")] == [2, 1]
    assert book.definitions.get(TENANT, "chain", version=1).definition.name == "chain"
    assert (other.created_by, other.updated_by) == ("ana", "ben")


def test_a_change_of_a_version_that_is_not_the_newest_is_refused(book: WorkflowBook) -> None:
    book.definitions.create(TENANT, CHAIN, by="ana")
    book.definitions.change(TENANT, "chain", {**CHAIN, "name": "b"}, by="b", expected_version=1)

    with pytest.raises(WorkflowChanged, match="expected version 1"):
        book.definitions.change(TENANT, "chain", {**CHAIN, "name": "c"}, by="c", expected_version=1)
    with pytest.raises(WorkflowChanged, match="found version 2"):
        book.definitions.delete(TENANT, "chain", by="c", expected_version=1)
    with pytest.raises(WorkflowConflict, match="taken"):
        book.definitions.create(TENANT, CHAIN, by="ana")
    with pytest.raises(WorkflowInvalid, match="slug"):
        book.definitions.change(TENANT, "chain", workflow("another", step("a")), by="c")


def test_a_deleted_workflow_is_gone_and_its_slug_is_free(book: WorkflowBook) -> None:
    old = book.definitions.create(TENANT, CHAIN, by="ana")
    book.definitions.delete(TENANT, "chain", by="ana")

    with pytest.raises(NotFound):
        book.definitions.get(TENANT, "chain")
    with pytest.raises(NotFound):
        book.acts.start(TENANT, "chain")
    assert book.definitions.list(TENANT) == []
    assert book.definitions.create(TENANT, CHAIN, by="ana").id != old.id


def test_a_run_is_shown_with_steps_executions_and_history(shop: Shop, book: WorkflowBook) -> None:
    shop.define(CHAIN)
    run = shop.start("chain")
    with shop.working():
        shop.ended(run)

    shown = book.runs.run(TENANT, run).wire(book.runs.steps(TENANT, run))
    context = shown["context"]
    assert isinstance(context, dict)
    assert context["steps"] == {
        n: {"status": "succeeded", "output": {"n": 1}} for n in ("a", "b", "c")
    }
    assert [(j.address, j.status, j.job_slug) for j in book.runs.job_runs(TENANT, run)] == [
        (n, "succeeded", "echo") for n in ("a", "b", "c")
    ]
    assert [h.event_type for h in book.runs.history(TENANT, run)] == [
        "run.pending", "run.running", *["step.succeeded"] * 3, "run.succeeded",
    ]  # fmt: skip


def test_a_step_that_a_worker_holds_is_shown_as_running(shop: Shop, book: WorkflowBook) -> None:
    shop.define(workflow("slow", step("a", handler="wait")))
    run, handlers = shop.start("slow"), Handlers()
    before = book.runs.run(TENANT, run).wire()
    assert (before["status"], before["startedAt"]) == ("pending", None)

    with shop.working(handlers, name="holder"):
        wait_for(lambda: handlers.calls)
        (held,) = book.runs.steps(TENANT, run)
        (running,) = book.runs.job_runs(TENANT, run)
        (worker,) = book.runs.workers()
        figures = book.runs.queue()
        handlers.release.set()
        shop.ended(run)

    assert (held.status, held.worker, held.job_run_id) == ("running", "holder", f"{run}.a.1")
    assert held.last_heartbeat_at is not None
    assert (running.status, worker.name, worker.active) == ("running", "holder", 1)
    assert (running.kind, running.job_slug) == ("function", "wait")
    assert (figures.active, figures.waiting) == (1, 0)
    assert book.runs.queue().wire()["counts"] == {
        "waiting": 0, "active": 0, "completed": 1, "failed": 0, "delayed": 0, "paused": 0,
    }  # fmt: skip


def test_figures_sum_up_what_happened(shop: Shop, book: WorkflowBook) -> None:
    bad = workflow("bad", step("a", handler="refuse", retryPolicy={"maxAttempts": 1}))
    shop.define(CHAIN, bad)
    runs = [shop.start("chain"), shop.start("chain"), shop.start("bad"), shop.start("bad")]
    refusing = Handlers(refuse=lambda _call: Failed(Failure.REQUEST_FAILED, "502"))
    with shop.working(refusing):
        shop.ended(*runs)
    now = datetime.now(UTC)

    stats = book.runs.stats(TENANT, None, now - DAY, now + DAY)
    assert (stats.count("succeeded"), stats.count("failed")) == (2, 2)
    assert stats.failure_reasons == (("request_failed", 2),)
    assert stats.wire()["failureRate"] == 0.5
    buckets = book.runs.run_metrics(TENANT, "chain", now - DAY, now + DAY, 86_400)
    assert sum(each.succeeded for each in buckets) == 2
    assert [
        (s.workflow_slug, s.failures) for s in book.runs.streaks(threshold=2, window_s=900)
    ] == [("bad", 2)]
    assert (book.runs.typical_ms(TENANT, "chain") or -1) >= 0
    assert book.runs.typical_ms(TENANT, "bad") is None
    timeline = book.runs.timeline(TENANT, "bad", now - DAY, now + DAY)
    assert [(e.kind, e.status) for e in timeline] == [("run", "failed")] * 2


def test_pages_of_runs_follow_each_other_without_a_gap(shop: Shop, book: WorkflowBook) -> None:
    shop.define(CHAIN)
    made = [shop.start("chain") for _ in range(7)]

    found, before = [], None
    while page := book.runs.runs(TENANT, slug="chain", before=before, limit=3):
        found += [run.id for run in page]
        before = (page[-1].created_at, page[-1].id)

    assert found == made[::-1]
    assert book.runs.runs(TENANT, statuses=["failed"]) == []


def test_a_tenant_sees_and_touches_only_its_own(shop: Shop, book: WorkflowBook) -> None:
    shop.define(CHAIN)
    run = shop.start("chain", correlation_id="trace-1")
    book.services.put(Service(TENANT, "api", "http://api.example"), by="ana")

    for ask in (
        lambda: book.runs.run("another", run),
        lambda: book.definitions.get("another", "chain"),
        lambda: book.acts.cancel("another", run, by="x"),
        lambda: book.acts.replay("another", run, by="x"),
        lambda: book.services.get("another", "api"),
        lambda: book.definitions.delete("another", "chain", by="x"),
        lambda: book.services.delete("another", "api"),
    ):
        with pytest.raises(NotFound):
            ask()
    for empty in (
        book.runs.runs("another"),
        book.runs.steps("another", run),
        book.runs.job_runs("another", run),
        book.runs.history("another", run),
        book.runs.correlated("another", "trace-1"),
        book.definitions.list("another"),
        book.services.list("another"),
    ):
        assert empty == []
    assert [r.id for r in book.runs.correlated(TENANT, "trace-1")] == [run]


def test_a_service_is_registered_changed_and_forgotten(book: WorkflowBook) -> None:
    book.services.put(Service(TENANT, "api", "http://one.example"), by="ana")
    changed = book.services.put(
        Service(TENANT, "api", "http://two.example", headers={"x-key": "1"}), by="ana"
    )
    book.services.mark(TENANT, "api", "healthy")

    assert (changed.base_url, changed.headers) == ("http://two.example", {"x-key": "1"})
    assert book.services.get(TENANT, "api").status == "healthy"
    book.services.delete(TENANT, "api")
    assert book.services.service(TENANT, "api") is None
