"""A worker runs what is queued, and an idle one stops when told to."""

from __future__ import annotations

from tests.workflows.on_postgres.support import CHAIN, TENANT, Handlers, Shop, wait_for

RUN, JOB = "run-1", "run-1.a.1"


def queue_first_step(shop: Shop) -> None:
    """A run with its first step waiting, written as a launch would write it."""
    shop.define(CHAIN)
    key = shop.ask("SELECT id FROM workflow_definitions WHERE slug = 'chain'")[0][0]
    shop.do(
        "INSERT INTO workflow_runs (id, tenant_id, definition_id, definition_version,"
        " workflow_slug, status, parameters, shared, triggered_by, correlation_id)"
        " VALUES (%s, %s, %s, 1, 'chain', 'pending', '{}', '{}', 'tests', %s)",
        RUN, TENANT, key, RUN,
    )  # fmt: skip
    shop.do(
        "INSERT INTO workflow_run_steps (run_id, address, place, tenant_id, step_id, status, input)"
        " VALUES (%s, 'a', 0, %s, 'a', 'pending', '{\"n\": 1}')",
        RUN, TENANT,
    )  # fmt: skip
    shop.do(
        "INSERT INTO jobs (tenant_id, run_id, address, attempt) VALUES (%s, %s, 'a', 1)",
        TENANT,
        RUN,
    )


def test_a_queued_step_carries_its_run_to_its_end(shop: Shop) -> None:
    queue_first_step(shop)
    handlers = Handlers()

    with shop.working(handlers):
        assert shop.ended(RUN) == ["succeeded"]

    assert shop.steps(RUN) == {"a": "succeeded", "b": "succeeded", "c": "succeeded"}
    assert shop.output(RUN) == {"c": {"n": 1}}
    assert handlers.calls[0].job_run_id == JOB
    assert shop.ask("SELECT count(*) FROM jobs") == [(0,)]


def test_a_worker_that_leaves_is_no_longer_listed(shop: Shop) -> None:
    with shop.working():
        wait_for(lambda: shop.ask("SELECT count(*) FROM workflow_workers") == [(1,)])

    assert shop.ask("SELECT count(*) FROM workflow_workers") == [(0,)]
