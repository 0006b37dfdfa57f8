"""The past over HTTP: states, differences and replays, in the shapes the contract gives."""

from __future__ import annotations

import concurrent.futures
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.api.support import ADMIN, Server

from penstock.access.token import Scope
from penstock.base.clock import format_instant
from penstock.envelope.envelope import JsonObject, Stored
from penstock.store.timetravel.reducer import BUILT_IN, reducer
from penstock.store.timetravel.roster import Roster

TYPE = "metastore.record.updated"


@reducer("count", version=2, tags=["issueId"])
def count(state: JsonObject, event: Stored) -> JsonObject:
    return {"n": int(str(state.get("n", 0))) + 1}


@reducer("explosive")
def explosive(state: JsonObject, event: Stored) -> JsonObject:
    raise RuntimeError("boom \ud800")


@pytest.fixture(autouse=True, scope="module")
def reducers(api: Server) -> None:
    """The server knows two reducers of a package beside its own."""
    api.house.time_travel.roster = Roster([*BUILT_IN, count, explosive])


def publish(api: Server, *payloads: dict[str, Any], token: str = ADMIN, **more: Any) -> list[str]:
    """Events about one thing, published in this order; their ids."""
    made = [
        {
            "type": TYPE,
            "source": "metastore.api",
            "payload": {"namespace": "flags", "key": "search", **payload},
            **more,
        }
        for payload in payloads
    ]
    with api.client(token) as client:
        answered = client.post("/v1/events", json={"events": made})
    assert answered.status_code == 202, answered.text
    return [item["id"] for item in answered.json()["data"]["results"]]


def ask(api: Server, path: str, **parameters: Any) -> Any:
    answered = api.admin.get(path, params=parameters)
    assert answered.status_code == 200, answered.text
    return answered.json()["data"]


def refuse(api: Server, path: str, query: str) -> Any:
    answered = api.admin.get(f"{path}?{query}")
    assert answered.headers["content-type"] == "application/problem+json", answered.text
    return answered.status_code, answered.json()


def position(api: Server, event_id: str) -> int:
    return int(api.admin.get(f"/admin/events/{event_id}").json()["data"]["event"]["position"])


@pytest.fixture(scope="module")
def story(api: Server) -> list[int]:
    """The positions of three events about issue 42."""
    tags = {"issueId": "42", "mode": "dev"}
    ids = publish(
        api, {"version": 1}, {"version": 2, "record": {"owner": "a", "note": "x"}}, tags=tags
    )
    ids += publish(api, {"version": 3, "record": {"note": None}}, tags=tags, correlationId="req-9")
    return [position(api, event_id) for event_id in ids]


BASE = {"namespace": "flags", "key": "search"}


def test_the_state_of_now_has_the_shape_of_the_contract(api: Server, story: list[int]) -> None:
    data = ask(api, "/v1/state", tags="issueId:42")

    assert data["state"] == {**BASE, "version": 3, "record": {"owner": "a"}}
    assert data["events"] == 3
    assert set(data) == {"state", "asOf", "events"}
    assert set(data["asOf"]) == {"position", "at"}
    assert int(data["asOf"]["position"]) >= story[2]


def test_the_state_as_of_a_position(api: Server, story: list[int]) -> None:
    data = ask(api, "/v1/state", tags="issueId:42", asOf=str(story[0]))

    assert data["state"] == {**BASE, "version": 1}
    assert data["asOf"]["position"] == str(story[0])
    assert data["events"] == 1


def test_the_instant_of_an_answer_names_the_same_answer_again(
    api: Server, story: list[int]
) -> None:
    for each in story[1:]:
        shown = ask(api, "/v1/state", tags="issueId:42", asOf=str(each))

        again = ask(api, "/v1/state", tags="issueId:42", asOf=shown["asOf"]["at"])

        assert again["events"] >= shown["events"]
        assert int(again["asOf"]["position"]) >= each
    last = ask(api, "/v1/state", tags="issueId:42", asOf=str(story[2]))
    assert (
        ask(api, "/v1/state", tags="issueId:42", asOf=last["asOf"]["at"])["state"] == last["state"]
    )


def test_as_of_before_the_first_event_the_state_is_empty(api: Server, story: list[int]) -> None:
    for moment in ("0", "1999-12-31T23:59:59Z", "2020-01-01T00:00:00.000%2B02:00"):
        answered = api.admin.get(f"/v1/state?tags=issueId:42&asOf={moment}")

        assert answered.json() == {
            "data": {"state": {}, "asOf": {"position": "0", "at": None}, "events": 0}
        }


def test_of_an_unknown_entity_the_state_is_empty(api: Server, story: list[int]) -> None:
    data = ask(api, "/v1/state", tags="issueId:no-such")

    assert (data["state"], data["events"]) == ({}, 0)


def test_several_tags_must_all_be_there(api: Server, story: list[int]) -> None:
    publish(api, {"version": 9}, tags={"issueId": "42", "mode": "business"})

    by_comma = ask(api, "/v1/state", tags="issueId:42,mode:dev")
    repeated = api.admin.get("/v1/state?tags=issueId:42&tags=mode:dev").json()["data"]

    assert by_comma["state"]["version"] == 3
    assert by_comma["state"] == repeated["state"]
    assert ask(api, "/v1/state", tags="issueId:42")["state"]["version"] == 9


def test_a_type_narrows_the_history(api: Server, story: list[int]) -> None:
    assert ask(api, "/v1/state", tags="issueId:42,mode:dev", type="metastore.**")["events"] == 3
    assert ask(api, "/v1/state", tags="issueId:42,mode:dev", type="asset.*")["events"] == 0


def test_a_named_reducer_folds_instead(api: Server, story: list[int]) -> None:
    data = ask(api, "/v1/state", tags="issueId:42,mode:dev", reducer="count")
    per_type = ask(api, "/v1/state", tags="issueId:42,mode:dev", reducer="last-write-wins-per-type")

    assert data["state"] == {"n": 3}
    assert per_type["state"][TYPE]["version"] == 3


def test_a_diff_names_the_event_behind_each_change(api: Server, story: list[int]) -> None:
    first, second, third = story

    data = ask(api, "/v1/state/diff", **{"tags": "issueId:42,mode:dev", "from": first, "to": third})

    assert [(c["pointer"], c["before"], c["after"]) for c in data["changes"]] == [
        ("/record", None, {"owner": "a"}), ("/version", 1, 3),
    ]  # fmt: skip
    for change in data["changes"]:
        assert set(change) == {"pointer", "kind", "before", "after", "event"}
        assert set(change["event"]) == {"id", "type", "position", "occurredAt"}
        assert change["event"]["position"] == str(third)
        assert change["event"]["type"] == TYPE
    assert data["from"]["position"] == str(first)
    assert data["to"]["position"] == str(third)
    second_only = ask(
        api, "/v1/state/diff", **{"tags": "issueId:42,mode:dev", "from": first, "to": second}
    )
    assert {c["event"]["position"] for c in second_only["changes"]} == {str(second)}


def test_a_diff_between_instants_is_that_between_their_positions(
    api: Server, story: list[int]
) -> None:
    at = ask(api, "/v1/state", tags="issueId:42", asOf=str(story[2]))["asOf"]["at"]

    data = ask(
        api, "/v1/state/diff",
        **{"tags": "issueId:42,mode:dev", "from": "2020-01-01T00:00:00Z", "to": at},
    )  # fmt: skip

    assert {c["pointer"] for c in data["changes"]} == {"/namespace", "/key", "/version", "/record"}
    assert {c["kind"] for c in data["changes"]} == {"added"}
    assert data["from"] == {"position": "0", "at": None}


def test_a_diff_without_bounds_is_about_everything(api: Server, story: list[int]) -> None:
    data = ask(api, "/v1/state/diff", tags="issueId:42,mode:dev")

    assert len(data["changes"]) == 4


def future() -> str:
    return format_instant(datetime.now(UTC) + timedelta(hours=1))


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("", "tags"),
        ("asOf=1", "tags"),
        ("tags=issueId", "tags"),
        ("tags=:42", "tags"),
        ("tags=issueId:", "tags"),
        ("tags=", "tags"),
        ("tags=issueId:42,", "tags"),
        ("tags=issueId:%00", "tags"),
        ("tags=a%20b:1", "tag.a b"),
        ("tags=issueId:42&asOf=", "asOf"),
        ("tags=issueId:42&asOf=yesterday", "asOf"),
        ("tags=issueId:42&asOf=-1", "asOf"),
        ("tags=issueId:42&asOf=1.5", "asOf"),
        ("tags=issueId:42&asOf=99999999999999999999", "asOf"),
        ("tags=issueId:42&asOf=2026-01-01T00:00:00", "asOf"),
        ("tags=issueId:42&asOf=2026-02-30T00:00:00Z", "asOf"),
        ("tags=issueId:42&asOf=1&asOf=2", "asOf"),
        ("tags=issueId:42&asOf=100000", "asOf"),
        ("tags=issueId:42&reducer=no-such", "reducer"),
        ("tags=prId:7&reducer=count", "reducer"),
        ("tags=issueId:42&type=a%20b", "type"),
        ("tags=issueId:42&asof=1", "asof"),
        ("tags=issueId:42&from=1", "from"),
        ("tags=issueId:42&limit=1", "limit"),
    ],
)
def test_a_bad_question_is_400_and_names_what_is_wrong(
    api: Server, story: list[int], query: str, parameter: str
) -> None:
    status, problem = refuse(api, "/v1/state", query)

    assert (status, problem["code"]) == (400, "query_invalid")
    assert problem["errors"][0]["pointer"] == parameter
    assert "expected" in problem["detail"]
    assert problem["remedy"]


def test_the_future_is_refused_with_what_is_newest(api: Server, story: list[int]) -> None:
    for query, parameter in (
        (f"/v1/state?tags=issueId:42&asOf={future()}", "asOf"),
        ("/v1/state?tags=issueId:42&asOf=2999-01-01T00:00:00Z", "asOf"),
        (f"/v1/state/diff?tags=issueId:42&from=0&to={future()}", "to"),
        (f"/v1/replay?tags=issueId:42&from={future()}", "from"),
    ):
        answered = api.admin.get(query)

        assert answered.status_code == 400
        assert answered.json()["errors"][0]["pointer"] == parameter
        assert "newest" in answered.json()["remedy"]


def test_a_span_backwards_is_refused(api: Server, story: list[int]) -> None:
    status, problem = refuse(
        api, "/v1/state/diff", f"tags=issueId:42&from={story[1]}&to={story[0]}"
    )

    assert (status, problem["errors"][0]["pointer"]) == (400, "from")


@pytest.mark.parametrize("path", ["/v1/state", "/v1/state/diff", "/v1/replay"])
def test_a_reducer_that_raises_is_422_naming_the_event_and_never_500(
    api: Server, story: list[int], path: str
) -> None:
    status, problem = refuse(api, path, "tags=issueId:42,mode:dev&reducer=explosive")

    assert (status, problem["code"]) == (422, "reducer_failed")
    assert f"at position {story[0]}" in problem["detail"]
    assert "RuntimeError: boom" in problem["detail"]


def test_a_replay_steps_through_every_event_with_its_changes(api: Server, story: list[int]) -> None:
    data = ask(api, "/v1/replay", tags="issueId:42,mode:dev")

    assert [int(step["event"]["position"]) for step in data["steps"]] == story
    assert [c["pointer"] for c in data["steps"][2]["changes"]] == ["/record/note", "/version"]
    assert data["state"] == {}
    assert data["reducer"] == {"name": "last-write-wins", "version": 1}
    assert data["focus"] is None
    assert data["page"] == {"nextCursor": None, "hasMore": False, "limit": 100}
    assert data["steps"][0]["event"]["payload"]["version"] == 1


def test_a_replay_goes_on_by_cursor_and_by_link(api: Server, story: list[int]) -> None:
    first = api.admin.get("/v1/replay?tags=issueId:42,mode:dev&limit=2")
    cursor = first.json()["data"]["page"]["nextCursor"]

    rest = ask(api, "/v1/replay", tags="issueId:42,mode:dev", limit=2, cursor=cursor)

    assert [int(step["event"]["position"]) for step in rest["steps"]] == story[2:]
    assert rest["state"]["version"] == 2
    assert rest["events"] == 2
    assert first.links["next"]["url"].startswith("/v1/replay?tags=issueId")
    status, problem = refuse(api, "/v1/replay", f"tags=issueId:43&cursor={cursor}")
    assert (status, problem["errors"][0]["pointer"]) == (400, "cursor")


def test_an_event_opens_the_history_it_is_part_of(api: Server, story: list[int]) -> None:
    last = api.admin.get("/v1/replay?tags=issueId:42,mode:dev").json()["data"]["steps"][2]["event"]
    (alone,) = publish(api, {"version": 77})

    by_correlation = ask(api, "/v1/replay", eventId=last["id"])
    by_itself = ask(api, "/v1/replay", eventId=alone)

    assert by_correlation["boundary"]["correlationId"] == "req-9"
    assert by_correlation["focus"] == str(story[2])
    assert [step["event"]["id"] for step in by_itself["steps"]] == [alone]
    assert by_itself["steps"][0]["changes"][2]["after"] == 77


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("eventId=no-such", 404, "not_found"),
        ("eventId=x&tags=a:1", 400, "query_invalid"),
        ("eventId=x&correlationId=r", 400, "query_invalid"),
        ("eventId=%00", 400, "query_invalid"),
        ("eventId=" + "x" * 900, 404, "not_found"),
        ("tags=a:1&limit=many", 400, "query_invalid"),
        ("tags=a:1&cursor=forged", 400, "query_invalid"),
        ("", 400, "query_invalid"),
    ],
)
def test_a_bad_replay_is_refused_clearly(api: Server, query: str, status: int, code: str) -> None:
    found, problem = refuse(api, "/v1/replay", query)

    assert (found, problem["code"]) == (status, code)


def test_another_tenant_sees_a_history_of_its_own(api: Server, story: list[int]) -> None:
    secret = api.token(Scope.EVENTS_READ, Scope.EVENTS_PUBLISH, tenant_id="acme")
    publish(api, {"version": 1_000}, tags={"issueId": "42"}, token=secret)
    (theirs,) = publish(api, {"version": 1_001}, tags={"issueId": "42"}, token=secret)

    with api.client(secret) as client:
        seen = client.get("/v1/state?tags=issueId:42").json()["data"]
        steps = client.get("/v1/replay?tags=issueId:42").json()["data"]["steps"]

    assert seen["state"]["version"] == 1_001
    assert seen["events"] == len(steps) == 2
    assert ask(api, "/v1/state", tags="issueId:42,mode:dev")["state"]["version"] == 3
    assert api.admin.get(f"/v1/replay?eventId={theirs}").status_code == 404


def test_asking_about_the_past_writes_no_event(api: Server, story: list[int]) -> None:
    before = api.house.reader.head(), api.admin.get("/admin/ledger").json()

    for path in ("/v1/state", "/v1/state/diff", "/v1/replay"):
        ask(api, path, tags="issueId:42")

    assert (api.house.reader.head(), api.admin.get("/admin/ledger").json()) == before


def test_many_questions_at_once_are_all_answered(api: Server, story: list[int]) -> None:
    def asked(_: int) -> int:
        return api.admin.get("/v1/state?tags=issueId:42,mode:dev").status_code

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert set(pool.map(asked, range(48))) == {200}
