"""Appends over HTTP keep the contract, and the checks of dcb.events hold against them."""

from __future__ import annotations

import asyncio
import random
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import pytest
from tests.api.support import Server, event

from penstock.access.token import Scope
from penstock.base.errors import (
    AccessDenied,
    AppendConflict,
    ConditionInvalid,
    EventRefused,
    StoreUnavailable,
)
from penstock.base.ids import uuid7
from penstock.envelope.envelope import Stored
from penstock.store.append.condition import Condition, Criterion, criteria_of
from penstock.store.append.decision import adecide, decide
from penstock.store.append.over_http import RemoteStore
from penstock.store.query import Query

TYPE = "metastore.record.updated"


@pytest.fixture
def issue() -> str:
    """A boundary that no other test uses."""
    return uuid.uuid4().hex


def item(*types: str, **tags: str) -> dict[str, Any]:
    return {**({"types": list(types)} if types else {}), **({"tags": tags} if tags else {})}


def unless(*items: dict[str, Any], after: str | None = None) -> dict[str, Any]:
    query: dict[str, Any] = {"query": {"items": list(items)}}
    return query if after is None else {**query, "after": after}


def appended(client: httpx.Client, *events: Any, **condition: Any) -> httpx.Response:
    return client.post("/v1/append", json={"events": list(events), **condition})


def read(client: httpx.Client, *items: dict[str, Any], **options: Any) -> dict[str, Any]:
    answered = client.post("/v1/decide/read", json={"query": {"items": list(items)}, **options})
    assert answered.status_code == 200, answered.text
    assert set(answered.json()) == {"data"}
    found: dict[str, Any] = answered.json()["data"]
    return found


def test_an_append_answers_with_positions_and_is_readable_at_once(api: Server, issue: str) -> None:
    said = event(id=issue, tags={"issueId": issue})

    answered = appended(api.admin, said, condition=unless(item(TYPE, issueId=issue)))

    assert answered.status_code == 200
    (position,) = answered.json()["data"]["positions"]
    assert answered.json() == {"data": {"positions": [position], "after": position}}
    assert position.isdigit()
    assert api.admin.get(f"/admin/events/{issue}").json()["data"]["event"]["position"] == position
    found = read(api.admin, item(issueId=issue))
    assert set(found) == {"events", "after"}
    assert [each["id"] for each in found["events"]] == [issue]
    assert int(found["after"]) >= int(position)


def test_a_conflict_is_409_with_the_positions_in_the_way(api: Server, issue: str) -> None:
    tagged = event(tags={"issueId": issue})
    first = appended(api.admin, tagged).json()["data"]["positions"]

    answered = appended(api.admin, tagged, condition=unless(item(issueId=issue)))

    problem = answered.json()
    assert (answered.status_code, problem["code"]) == (409, "append_conflict")
    assert problem["conflictingPositions"] == first
    assert problem["clause"] == "query"
    assert problem["remedy"]
    assert answered.headers["content-type"] == "application/problem+json"
    assert len(read(api.admin, item(issueId=issue))["events"]) == 1


def test_after_lets_pass_what_was_seen(api: Server, issue: str) -> None:
    tagged = event(tags={"issueId": issue})
    appended(api.admin, tagged)
    seen = read(api.admin, item(issueId=issue))["after"]

    good = appended(api.admin, tagged, condition=unless(item(issueId=issue), after=seen))
    late = appended(api.admin, tagged, condition=unless(item(issueId=issue), after=seen))

    assert (good.status_code, late.status_code) == (200, 409)
    again = unless(item(issueId=issue), after=good.json()["data"]["after"])
    assert appended(api.admin, tagged, condition=again).status_code == 200


def test_the_same_append_again_answers_200_with_the_same_positions(api: Server, issue: str) -> None:
    events = [event(id=f"{issue}-{n}", tags={"issueId": issue}) for n in range(3)]
    condition = unless(item(issueId=issue))

    first = appended(api.admin, *events, condition=condition)
    again = appended(api.admin, *events, condition=condition)

    assert first.status_code == again.status_code == 200
    assert again.json() == first.json()


def test_an_idempotency_key_makes_a_repeat_without_ids_the_same_append(
    api: Server, issue: str
) -> None:
    body = {"events": [event(tags={"issueId": issue})], "condition": unless(item(issueId=issue))}

    first, again = (
        api.admin.post("/v1/append", json=body, headers={"Idempotency-Key": issue})
        for _ in range(2)
    )

    assert first.status_code == 200
    assert again.json() == first.json()


def test_fail_if_exists_is_told_apart_from_a_moved_boundary(api: Server, issue: str) -> None:
    head = appended(api.admin, event(tags={"command": issue})).json()["data"]["after"]
    exists = {"items": [item(command=issue)]}
    once = {**unless(item(issueId=issue), after=head), "failIfExists": exists}

    refused = appended(api.admin, event(), condition=once)
    other = {"failIfExists": {"items": [item(command="x" + issue)]}}
    alone = appended(api.admin, event(), condition=other)

    assert (refused.status_code, refused.json()["clause"]) == (409, "failIfExists")
    assert refused.json()["conflictingPositions"] == [head]
    assert alone.status_code == 200


def test_a_read_starts_at_from_and_stops_at_limit(api: Server, issue: str) -> None:
    events = [event(tags={"issueId": issue}) for _ in range(4)]
    positions = appended(api.admin, *events).json()["data"]["positions"]

    cut = read(api.admin, item(issueId=issue), limit=2)
    rest = read(api.admin, item(issueId=issue), **{"from": positions[2]})

    assert [each["position"] for each in cut["events"]] == positions[:2]
    assert cut["after"] == positions[1]
    assert [each["position"] for each in rest["events"]] == positions[2:]


def test_tenants_neither_see_nor_stop_one_another(api: Server, issue: str) -> None:
    scopes = (Scope.EVENTS_PUBLISH, Scope.EVENTS_READ)
    tagged = event(id=issue, tags={"issueId": issue})
    appended(api.admin, tagged)
    with api.as_scopes(*scopes, tenant_id="acme") as acme:
        answered = appended(acme, tagged, condition=unless(item(issueId=issue)))
        found = read(acme, item(issueId=issue))["events"]
        foreign = appended(acme, event(tenantId="default"))

    assert answered.status_code == 200
    assert [each["tenantId"] for each in found] == ["acme"]
    assert (foreign.status_code, foreign.json()["code"]) == (422, "tenant_mismatch")


def test_the_ledger_explains_every_append(api: Server, issue: str) -> None:
    appended(api.admin, event(id=issue))
    appended(api.admin, event(id=issue))

    assert api.admin.get("/admin/ledger").json()["data"]["unexplained"] == 0


BAD_EVENTS: list[tuple[dict[str, Any], str, str]] = [
    ({"type": "no.such.type"}, "type_unknown", "/events/1/type"),
    ({"schemaVersion": 99}, "version_unknown", "/events/1/schemaVersion"),
    ({"schemaHash": "0" * 64}, "version_unknown", "/events/1/schemaHash"),
    ({"payload": {"namespace": 7}}, "payload_invalid", "/events/1/payload"),
    ({"occurredAt": "2026-03-01T10:30:00"}, "envelope_invalid", "/events/1/occurredAt"),
    ({"tags": {"issueId": 42}}, "envelope_invalid", "/events/1/tags/issueId"),
    ({"id": "not an id"}, "envelope_invalid", "/events/1/id"),
    ({"surprise": 1}, "envelope_invalid", "/events/1/surprise"),
    ({"source": ""}, "envelope_invalid", "/events/1/source"),
]


@pytest.mark.parametrize(("change", "code", "pointer"), BAD_EVENTS)
def test_a_bad_event_refuses_the_whole_append_and_nothing_is_stored(
    api: Server, issue: str, change: dict[str, Any], code: str, pointer: str
) -> None:
    good = event(tags={"issueId": issue})

    answered = appended(api.admin, good, event(**change))

    problem = answered.json()
    assert (answered.status_code, problem["code"]) == (422, code)
    assert problem["errors"][0]["pointer"].startswith(pointer)
    assert problem["remedy"]
    assert read(api.admin, item(issueId=issue))["events"] == []


def test_an_id_that_must_be_a_uuid7_and_is_not_is_refused(api: Server) -> None:
    said = event(
        type="ISSUE.COMMENT.ADDED", source="tamma.issues", id="plain-id",
        payload={"issueId": "1"},
    )  # fmt: skip

    answered = appended(api.admin, said)

    assert (answered.status_code, answered.json()["code"]) == (422, "envelope_invalid")
    assert any(each["pointer"] == "/events/0/id" for each in answered.json()["errors"])


def test_an_id_of_another_content_is_refused(api: Server, issue: str) -> None:
    appended(api.admin, event(id=issue))

    answered = appended(api.admin, event(), event(id=issue, correlationId="other"))

    assert (answered.status_code, answered.json()["code"]) == (422, "id_conflict")
    assert answered.json()["errors"][0]["pointer"] == "/events/1/id"


BAD_CONDITIONS: list[tuple[Any, str]] = [
    ("soon", "/condition"),
    ({}, "/condition"),
    ({"query": {}}, "/condition/query/items"),
    ({"query": {"items": []}}, "/condition/query/items"),
    ({"query": {"items": [{}]}}, "/condition/query/items/0"),
    ({"query": {"items": [{"types": [], "tags": {}}]}}, "/condition/query/items/0"),
    ({"query": {"items": [{"types": [TYPE]}, {}]}}, "/condition/query/items/1"),
    ({"query": {"items": [{"types": TYPE}]}}, "/condition/query/items/0/types"),
    ({"query": {"items": [{"types": [7]}]}}, "/condition/query/items/0/types/0"),
    ({"query": {"items": [{"types": ["metastore.*"]}]}}, "/condition/query/items/0/types/0"),
    ({"query": {"items": [{"types": ["a b"]}]}}, "/condition/query/items/0/types/0"),
    ({"query": {"items": [{"types": ["no.such"]}]}}, "/condition/query/items/0/types/0"),
    ({"query": {"items": [{"tags": ["issueId:42"]}]}}, "/condition/query/items/0/tags"),
    ({"query": {"items": [{"tags": {"issueId": 42}}]}}, "/condition/query/items/0/tags/issueId"),
    ({"query": {"items": [{"tags": {"a b": "42"}}]}}, "/condition/query/items/0/tags/a b"),
    ({"query": {"items": [{"tag": {"a": "42"}}]}}, "/condition/query/items/0/tag"),
    ({"query": {"items": [{"tags": {"a": "b"}}] * 51}}, "/condition/query/items"),
    ({"query": {"items": [{"tags": {"a": "b"}}]}, "after": "-1"}, "/condition/after"),
    ({"query": {"items": [{"tags": {"a": "b"}}]}, "after": "1.5"}, "/condition/after"),
    ({"query": {"items": [{"tags": {"a": "b"}}]}, "after": True}, "/condition/after"),
    ({"query": {"items": [{"tags": {"a": "b"}}]}, "after": "9" * 18}, "/condition/after"),
    ({"query": {"items": [{"tags": {"a": "b"}}]}, "afterwards": "1"}, "/condition/afterwards"),
    ({"failIfExists": {"items": [{}]}}, "/condition/failIfExists/items/0"),
    ({"failIfExists": {"items": [{"tags": {"a": "b"}}]}, "after": "1"}, "/condition/query"),
]


@pytest.mark.parametrize(("condition", "pointer"), BAD_CONDITIONS)
def test_a_condition_that_cannot_be_checked_is_refused_with_pointer_and_remedy(
    api: Server, issue: str, condition: Any, pointer: str
) -> None:
    answered = appended(api.admin, event(tags={"issueId": issue}), condition=condition)

    problem = answered.json()
    assert (answered.status_code, problem["code"]) == (422, "condition_invalid")
    assert problem["errors"][0]["pointer"] == pointer
    assert problem["remedy"]
    assert read(api.admin, item(issueId=issue))["events"] == []


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({}, 422, "/events"),
        ({"events": {}}, 422, "/events"),
        ({"events": []}, 422, "/events"),
        ({"events": [event()] * 1001}, 413, "/events"),
        ({"events": [event()], "conditions": {}}, 422, "/conditions"),
        ([event()], 422, ""),
    ],
)
def test_a_body_of_another_shape_is_refused(
    api: Server, body: Any, status: int, pointer: str
) -> None:
    answered = api.admin.post("/v1/append", json=body)

    assert answered.status_code == status
    assert answered.json()["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/query"),
        ({"query": {"items": []}}, "/query/items"),
        ({"query": {"items": [{}]}}, "/query/items/0"),
        ({"query": {"items": [{"types": ["metastore.**"]}]}}, "/query/items/0/types/0"),
        ({"query": {"items": [{"types": ["no.such"]}]}}, "/query/items/0/types/0"),
        ({"query": {"items": [{"tags": {"a": "b"}}]}, "limit": 0}, "/limit"),
        ({"query": {"items": [{"tags": {"a": "b"}}]}, "limit": "5"}, "/limit"),
        ({"query": {"items": [{"tags": {"a": "b"}}]}, "from": "x"}, "/from"),
        ({"query": {"items": [{"tags": {"a": "b"}}]}, "cursor": "x"}, "/cursor"),
    ],
)
def test_a_read_that_means_nothing_is_refused(api: Server, body: Any, pointer: str) -> None:
    answered = api.admin.post("/v1/decide/read", json=body)

    assert answered.status_code == 422
    assert answered.json()["errors"][0]["pointer"] == pointer


def test_bytes_that_are_not_json_are_400(api: Server) -> None:
    for raw in (b"{", b'{"events": [], "events": []}', b"\xff"):
        answered = api.admin.post(
            "/v1/append", content=raw, headers={"content-type": "application/json"}
        )
        assert answered.status_code == 400


def test_a_decision_is_made_over_http_as_in_the_program(api: Server, issue: str) -> None:
    query = Query().type(TYPE).tag("issueId", issue)
    token = api.token(Scope.EVENTS_PUBLISH, Scope.EVENTS_READ)

    def decide_once(store: RemoteStore) -> Any:
        said = event(tags={"issueId": issue})
        return decide(
            store, query, lambda n, _: n + 1, lambda n: [said] if n < 2 else [], initial=0
        )

    with RemoteStore(api.url, token) as store:
        decided = [decide_once(store) for _ in range(3)]
        (criterion,) = criteria_of(query)
        found = store.read((criterion,))
        with pytest.raises(AppendConflict) as moved:
            store.append([event()], Condition((criterion,), after=found.events[0].position))
        with pytest.raises(AppendConflict, match="anywhere"):
            store.append([event()], Condition(fail_if_exists=(criterion,)))
        with pytest.raises(ConditionInvalid, match="nearest"):
            store.read((Criterion(("metastore.record.updatd",)),))
        with pytest.raises(EventRefused) as refused:
            store.append([event(type="no.such")])

    assert [each.state for each in decided] == [0, 1, 2]
    assert decided[2].appended is None
    assert found.events == house_events(api, issue)
    assert moved.value.positions == (found.events[1].position,)
    assert refused.value.faults[0].pointer == "/events/0/type"


def house_events(api: Server, issue: str) -> list[Stored]:
    stored = api.house.appends.of().read(criteria_of(Query().tag("issueId", issue))).events
    return [
        replace(
            e,
            content_hash=b"",
            received_at=e.received_at.replace(microsecond=e.received_at.microsecond // 1000 * 1000),
        )
        for e in stored
    ]


def test_a_decision_is_awaited_over_http(api: Server, issue: str) -> None:
    async def main() -> list[Any]:
        store = RemoteStore(api.url, api.token(Scope.EVENTS_PUBLISH, Scope.EVENTS_READ))
        said = event(tags={"issueId": issue})
        tasks = [
            adecide(
                store, Query().tag("issueId", issue), lambda n, _: n + 1,
                lambda n: [said] if n == 0 else [], initial=0,
            )
            for _ in range(6)
        ]  # fmt: skip
        decided = await asyncio.gather(*tasks)
        await store.aclose()
        return [each.appended for each in decided]

    assert sum(each is not None for each in asyncio.run(main())) == 1


def test_one_remote_store_serves_one_event_loop_after_another(
    api: Server, issue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", api.url)
    monkeypatch.setenv("PENSTOCK_TOKEN", api.token(Scope.EVENTS_PUBLISH, Scope.EVENTS_READ))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # not for a server on this machine
    store = RemoteStore()

    async def append() -> int:
        return len((await store.aappend([event(tags={"issueId": issue})])).positions)

    async def read_and_close() -> int:
        async with store:
            return len((await store.aread(criteria_of(Query().tag("issueId", issue)))).events)

    assert [asyncio.run(append()), asyncio.run(append())] == [1, 1]
    assert asyncio.run(read_and_close()) == 2
    with pytest.raises(RuntimeError, match="closed"):
        store.append([event()])


def test_a_server_that_is_away_or_another_is_told_as_unavailable(api: Server) -> None:
    with RemoteStore("http://127.0.0.1:9") as nowhere, pytest.raises(StoreUnavailable):
        nowhere.append([event()])
    with (
        RemoteStore(api.url, "a-token-that-nobody-knows-of") as stranger,
        pytest.raises(AccessDenied),
    ):
        stranger.read((Criterion((TYPE,)),))


def test_pages_are_shown_as_of_a_position_or_an_instant(api: Server, issue: str) -> None:
    events = [event(tags={"issueId": issue}) for _ in range(2)]
    first = appended(api.admin, events[0]).json()["data"]["after"]
    second = appended(api.admin, events[1]).json()["data"]["after"]

    def shown(place: str) -> list[str]:
        found = api.admin.get("/admin/events", params={"tag.issueId": issue, "asOf": place})
        assert found.status_code == 200, found.text
        return [each["position"] for each in found.json()["data"]["events"]]

    assert (shown(first), shown(second)) == ([first], [second, first])
    assert shown("2020-01-01T00:00:00Z") == []
    assert shown("2100-01-01T00:00:00Z") == [second, first]
    facets = api.admin.get("/admin/events/facets", params={"tag.issueId": issue, "asOf": first})
    assert facets.json()["data"]["sampled"] == 1
    wrong = api.admin.get("/admin/events", params={"asOf": "then"})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (400, "asOf")
    live = api.admin.get("/v1/events/stream", params={"asOf": first})
    assert live.status_code == 400


def test_one_event_is_not_there_as_of_a_moment_before_it(api: Server, issue: str) -> None:
    events = [event(id=uuid7(), tags={"issueId": issue}) for _ in range(2)]
    first = appended(api.admin, events[0]).json()["data"]["after"]
    second = appended(api.admin, events[1]).json()["data"]["after"]

    def status(**params: str) -> int:
        return api.admin.get(f"/admin/events/{events[1]['id']}", params=params).status_code

    assert (status(), status(asOf=second), status(asOf=first)) == (200, 200, 404)
    assert status(asOf="2020-01-01T00:00:00Z") == 404
    assert status(asOf="2100-01-01T00:00:00Z") == 200
    assert (status(asOf="then"), status(asof=first)) == (400, 400)


# The checks of dcb.events (github.com/dcb-events, the k6 suite), against our API. Their query that
# means everything is, here, the one that names every type.

KINDS = [f"dcb.checked.t{n}" for n in range(6)]
MARKS = [f"tag{n}" for n in range(6)]


@pytest.fixture(scope="module")
def dcb(api: Server) -> Server:
    """Types that may say anything."""
    for kind in KINDS:
        schema = {"eventType": kind, "version": 1, "schema": {"type": "object"}, "status": "active"}
        answered = api.admin.post("/admin/event-schemas", json=schema)
        assert answered.status_code in (200, 201), answered.text
    return api


def random_query(rng: random.Random) -> list[dict[str, Any]]:
    items = []
    for _ in range(rng.randint(0, 3)):
        types = rng.sample(KINDS, rng.randint(0, 3))
        tags = dict.fromkeys(rng.sample(MARKS, rng.randint(0 if types else 1, 2)), "x")
        items.append(item(*types, **tags))
    return items or [item(*KINDS)]


def random_events(rng: random.Random, run: str, data: dict[str, Any], most: int) -> list[Any]:
    return [
        event(
            type=rng.choice(KINDS), source="dcb.check",
            tags=dict.fromkeys(rng.sample(MARKS, rng.randint(0, 3)), "x") | {"run": run},
            payload=data if n == 0 else {"batchIndex": n},
        )
        for n in range(rng.randint(1, most))
    ]  # fmt: skip


def positions_of(client: httpx.Client, items: list[dict[str, Any]], run: str) -> list[int]:
    scoped = [{**each, "tags": {**each.get("tags", {}), "run": run}} for each in items]
    return [int(each["position"]) for each in read(client, *scoped)["events"]]


def test_dcb_consistency_every_append_saw_what_its_condition_says(dcb: Server) -> None:
    run = uuid.uuid4().hex

    def append_events(seed: int) -> int:
        rng, refused = random.Random(seed), 0
        with dcb.client("an-admin-token-for-tests-only") as client:
            for _ in range(15):
                query = random_query(rng)
                last = max(positions_of(client, query, run), default=0)
                data = {"batchIndex": 0, "query": query, "lastMatchingEventPosition": last}
                scoped = [{**each, "tags": {**each.get("tags", {}), "run": run}} for each in query]
                events = random_events(rng, run, data, 2)
                answered = appended(client, *events, condition=unless(*scoped, after=str(last)))
                assert answered.status_code in (200, 409), answered.text
                refused += answered.status_code == 409
        return refused

    with ThreadPoolExecutor(8) as pool:
        refused = sum(pool.map(append_events, range(8)))
    stored = read(dcb.admin, item(run=run))["events"]
    first = [each for each in stored if each["payload"].get("batchIndex") == 0]
    for each in first:
        before = [
            p
            for p in positions_of(dcb.admin, each["payload"]["query"], run)
            if p < int(each["position"])
        ]
        assert max(before, default=0) == each["payload"]["lastMatchingEventPosition"]
    assert refused > 0
    assert len(first) == 8 * 15 - refused


def test_dcb_monotonicity_positions_never_appear_behind_one_that_was_read(dcb: Server) -> None:
    run = uuid.uuid4().hex
    done = threading.Event()
    seen: list[list[int]] = []

    def append_events(seed: int) -> None:
        rng = random.Random(seed)
        with dcb.client("an-admin-token-for-tests-only") as client:
            for _ in range(12):
                assert appended(client, *random_events(rng, run, {}, 5)).status_code == 200

    def read_positions() -> None:
        with dcb.client("an-admin-token-for-tests-only") as client:
            while not done.is_set():
                seen.append(positions_of(client, [item(*KINDS)], run))

    with ThreadPoolExecutor(6) as pool:
        reading = pool.submit(read_positions)
        for writing in [pool.submit(append_events, seed) for seed in range(5)]:
            writing.result()
        done.set()
        reading.result()
    final = positions_of(dcb.admin, [item(*KINDS)], run)
    for batch in seen:
        assert batch == final[: len(batch)]
    assert final == sorted(set(final))


def test_dcb_parallel_writes_on_one_condition_have_one_winner(dcb: Server) -> None:
    def race(n: int, boundary: str) -> int:
        with dcb.client("an-admin-token-for-tests-only") as client:
            said = event(type=KINDS[n % 6], source="dcb.check", tags={"boundary": boundary})
            return appended(client, said, condition=unless(item(boundary=boundary))).status_code

    with ThreadPoolExecutor(10) as pool:
        for _ in range(12):
            boundary = uuid.uuid4().hex
            answers = sorted(pool.map(lambda n, b=boundary: race(n, b), range(10)))  # type: ignore[misc]
            assert answers == [200] + [409] * 9
