"""Retries that operators touch are told to the clients of their tenant, and to nobody else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime

import psycopg
import pytest
from tests.health.scene import busy_scene
from tests.stream.test_hub import EVERYTHING, Client, MemoryLog, hub_over
from tests.stream.test_on_postgres import cut, until
from tests.triggers.on_postgres.support import TableLauncher, act, host_of
from tests.workflows.on_postgres.support import TENANT, Handlers, shop, step, wait_for, workflow

from penstock.base.backoff import Backoff
from penstock.health.activity.on_postgres import ActivityReader
from penstock.store.query import EventQuery
from penstock.stream.frames import Form, Style, notice
from penstock.stream.hub import Hub
from penstock.stream.notices.notice import TYPES, Notice, read_notices
from penstock.stream.notices.on_postgres import Notices
from penstock.triggers.delivery import Act, ActKind, ActOutcome, Target
from penstock.triggers.host.acts import notice as notice_of_pass
from penstock.workflows.port import Failed, Failure, StepCall, StepResult
from penstock.workflows.queue.job import step_name

AT = datetime(2026, 1, 31, tzinfo=UTC)
FORCED = Notice("acme", "retry.trigger.delivery.forced", {"deliveryId": "d-1", "forcedBy": "ann"})


@pytest.mark.parametrize(
    ("target", "kind", "type_", "data"),
    [
        (Target.EVENT, ActKind.CANCEL, "retry.event.source.cancelled",
         {"eventId": "x", "cancelledBy": "ann"}),
        (Target.EVENT, ActKind.FORCE, "retry.event.source.forced",
         {"eventId": "x", "forcedBy": "ann"}),
        (Target.DELIVERY, ActKind.CANCEL, "retry.trigger.delivery.cancelled",
         {"deliveryId": "x", "cancelledBy": "ann"}),
        (Target.DELIVERY, ActKind.FORCE, "retry.trigger.delivery.forced",
         {"deliveryId": "x", "forcedBy": "ann"}),
    ],
)  # fmt: skip
def test_what_a_pass_tells_of_an_act_becomes_a_notice(
    target: Target, kind: ActKind, type_: str, data: dict[str, str]
) -> None:
    act = Act("a-1", kind, target, "x", "acme", "ann", AT)

    payload = notice_of_pass(7, [act], [ActOutcome("a-1", True, "done")])

    assert read_notices(payload) == [Notice("acme", type_, dict(data))]


@pytest.mark.parametrize(
    "payload",
    [
        "", "{", "[]", "1", "null", '{"pass": 7}', '{"frames": 1}', '{"frames": [1, null, {}]}',
        '{"frames": [{"type": "workflow.event.received", "tenantId": "acme", "id": "x"}]}',
        '{"frames": [{"type": "retry.workflow.step.forced", "id": "x", "by": "ann"}]}',
        '{"frames": [{"type": 1, "tenantId": "acme"}]}',
        '{"type": "retry.workflow.step.forced", "tenantId": "acme", "id": "x"}',
    ],
)  # fmt: skip
def test_what_is_not_understood_is_no_notice(payload: str) -> None:
    assert read_notices(payload) == []


@pytest.mark.parametrize("form", [Form(style) for style in Style])
def test_a_notice_has_no_position_because_it_is_not_in_order_with_the_log(form: Form) -> None:
    frame = notice(form, AT, FORCED.type, FORCED.data)

    said = json.loads(frame.body)
    assert (frame.type, frame.position) == (FORCED.type, None)
    assert said["data"] == FORCED.data


def hear(test: Callable[[Hub], None], *queries: EventQuery) -> list[list[str]]:
    """What clients with these filters hear, by the types of the frames."""

    async def around() -> list[list[str]]:
        log = MemoryLog()
        hub = hub_over(log)
        await hub.start()
        try:
            await hub.admit("t", None)
            clients = [Client(hub.subscribe(query)) for query in queries]
            test(hub)
            for tenant in {query.tenant_id for query in queries}:
                log.commit(tenant=tenant, kind="retry.last")
            for client in clients:
                await client.read_until(lambda me: bool(me.positions))
            return [client.kinds for client in clients]
        finally:
            await hub.stop()

    return asyncio.run(around())


def test_clients_of_the_tenant_hear_it_and_no_others() -> None:
    ours, theirs = hear(
        lambda hub: hub.announce(FORCED), EVERYTHING, EventQuery(tenant_id="globex")
    )

    assert FORCED.type in ours
    assert FORCED.type not in theirs


def test_a_filter_for_other_types_leaves_it_out() -> None:
    kinds = hear(
        lambda hub: hub.announce(FORCED),
        EventQuery("acme", types=("retry.last",)),
        EventQuery("acme", types=("retry.**",)),
    )

    assert [FORCED.type in each for each in kinds] == [False, True]


def test_a_client_that_does_not_read_is_spared_not_cut_off() -> None:
    def flood(hub: Hub) -> None:
        for _ in range(1_000):
            hub.announce(FORCED)

    (kinds,) = hear(flood, EVERYTHING)

    assert 0 < kinds.count(FORCED.type) < 64


def test_notices_are_heard_again_after_the_connection_was_cut(database: str) -> None:
    def tell() -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            for channel, type_ in (("triggers", TYPES[0]), ("retries", TYPES[4])):
                frame = {"type": type_, "id": "x", "tenantId": "acme", "by": "ann"}
                said = json.dumps({"frames": [frame]})
                connection.execute("SELECT pg_notify(%s, %s)", (f"penstock_{channel}", said))

    async def listen() -> None:
        heard: list[str] = []
        notices = Notices(database, backoff=Backoff(base_s=0.01, max_s=0.02))
        task = asyncio.create_task(notices.listen(lambda each: heard.append(each.type)))
        for _ in range(2):
            heard.clear()
            async with asyncio.timeout(10):
                while not {TYPES[0], TYPES[4]} <= set(heard):
                    await asyncio.to_thread(tell)
                    await asyncio.sleep(0.01)
            await asyncio.to_thread(cut, database)
        await until(lambda: not task.done())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(listen())


def heard_while(database: str, do: Callable[[], None]) -> list[Notice]:
    """The notices that other processes hear of what is done."""

    async def listen() -> list[Notice]:
        heard: list[Notice] = []
        task = asyncio.create_task(Notices(database).listen(heard.append))
        await until(lambda: listening(database) or task.done())
        await asyncio.to_thread(do)
        await until(lambda: bool(heard))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return heard

    return asyncio.run(listen())


def listening(database: str) -> bool:
    with psycopg.connect(database, autocommit=True) as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND query = 'LISTEN penstock_retries'"
        ).fetchone()
    return found is not None and found[0] > 0


def test_cancelling_a_delivery_is_heard_by_other_processes(database: str) -> None:
    with busy_scene(database) as scene:
        _, entries = ActivityReader(scene.pool).read(None).deliveries
        key = entries[0].delivery_id
        host = host_of(database, TableLauncher())

        def cancel() -> None:
            assert host.act(act(ActKind.CANCEL, Target.DELIVERY, key)).is_done

        heard = heard_while(database, cancel)
        host.close()

    assert heard == [
        Notice(
            "default",
            "retry.trigger.delivery.cancelled",
            {"deliveryId": key, "cancelledBy": "ann"},
        )
    ]


def test_forcing_a_step_is_heard_by_other_processes(database: str) -> None:
    later = {
        "maxAttempts": 3,
        "strategy": "fixed",
        "initialDelayMs": 600_000,
        "maxDelayMs": 600_000,
    }
    flaky = workflow("flaky", step("load", handler="flaky", retryPolicy=later))

    def fail(_call: StepCall) -> StepResult:
        return Failed(Failure.HANDLER_ERROR, "not now")

    with shop(database) as found:
        found.define(flaky)
        run_id = found.start("flaky")
        with found.working(Handlers(flaky=fail)):
            waits = "SELECT count(*) FROM workflow_run_steps WHERE retry_state = 'scheduled'"
            wait_for(lambda: found.ask(waits)[0][0] == 1)
        name = step_name(run_id, "load")

        heard = heard_while(database, lambda: found.acts.force_retry(TENANT, name, by="ann"))

    assert heard == [
        Notice(
            TENANT,
            "retry.workflow.step.forced",
            {"workflowRunStepId": name, "forcedBy": "ann"},
        )
    ]
