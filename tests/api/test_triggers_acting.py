"""What becomes of events at triggers over HTTP: deliveries, why, pauses, retries, back-tests."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.api.support import Server, event
from tests.api.test_triggers import acts, at, make, spec, workflow

from penstock.access.token import Scope
from penstock.api.handlers.preview import covered

_numbers = itertools.count()


def publish(api: Server, **payload: Any) -> str:
    """The id of a stored event."""
    key = f"evt-{next(_numbers)}"
    body = event(id=key, payload={"namespace": "n", "key": "k", **payload})
    assert api.admin.post("/v1/events", json=body).status_code == 202
    return key


def judge(api: Server) -> None:
    """Run passes until nothing is left to do now."""
    while api.house.trigger_host.run_pass().number is not None:
        pass


def only(slug_of: str) -> dict[str, Any]:
    """A predicate that lets through events of one test."""
    return {"path": "$.payload.owner", "operator": "equals", "value": slug_of}


def deliveries(api: Server, slug: str, trigger: dict[str, Any], **asked: Any) -> list[Any]:
    answered = api.admin.get(at(slug, trigger, "/deliveries"), params=asked)
    assert answered.status_code == 200, answered.text
    found: list[Any] = answered.json()["data"]
    return found


def test_deliveries_are_newest_first_without_payloads_and_say_what_they_are_of(api: Server) -> None:
    slug = workflow(api)
    made = make(
        api, slug, predicates=[only(slug)], idempotencyKeyExpression="{{ event.payload.version }}"
    )
    judge(api)
    first, second = publish(api, owner=slug, version=1), publish(api, owner=slug, version=1)
    judge(api)

    answered = api.admin.get(at(slug, made, "/deliveries"))

    body = answered.json()
    assert [(d["eventId"], d["status"]) for d in body["data"]] == [
        (second, "skipped"), (first, "launched"),
    ]  # fmt: skip
    assert body["meta"]["limit"] == 50
    assert body["meta"]["workflow"]["slug"] == slug
    assert body["meta"]["trigger"]["id"] == made["id"]
    launched = body["data"][1]
    assert launched["workflowRunId"]
    assert launched["workflowDefinitionId"]
    assert not {"parameters", "payload"} & set(launched)
    assert body["data"][0]["reason"] == "duplicate_key"
    assert body["data"][0]["workflowRunId"] == launched["workflowRunId"]
    assert [d["eventId"] for d in deliveries(api, slug, made, limit=1)] == [second]
    assert [d["eventId"] for d in deliveries(api, slug, made, status="launched")] == [first]
    assert [d["eventId"] for d in deliveries(api, slug, made, eventId=second)] == [second]
    assert len(deliveries(api, slug, made, dedupeKey="1")) == 2
    assert deliveries(api, slug, made, dedupeKey="2") == []
    older = deliveries(api, slug, made, before=body["data"][0]["position"])
    assert [d["eventId"] for d in older] == [first]


@pytest.mark.parametrize("query", ["?status=odd", "?limit=x", "?before=-1", "?colour=red"])
def test_a_question_about_deliveries_that_means_nothing_is_refused(api: Server, query: str) -> None:
    slug = workflow(api)
    answered = api.admin.get(at(slug, make(api, slug), f"/deliveries{query}"))

    assert (answered.status_code, answered.json()["code"]) == (400, "query_invalid")


def test_a_new_trigger_judges_nothing_that_was_judged_before_it_was_made(api: Server) -> None:
    slug = workflow(api)
    old = publish(api, owner=slug)
    judge(api)

    made = make(api, slug, predicates=[only(slug)])
    new = publish(api, owner=slug)
    judge(api)

    assert [d["eventId"] for d in deliveries(api, slug, made)] == [new]
    why = api.admin.get(f"/v1/triggers/{made['id']}/explain", params={"event": old}).json()["data"]
    assert (why["verdict"], why["reason"]) == ("unwanted", "not_defined")


def test_every_verdict_is_explained_with_actual_values_and_recomputed_the_same(api: Server) -> None:
    slug = workflow(api)
    big = {"path": "$.payload.version", "operator": "gt", "value": 10}
    made = make(api, slug, predicates=[only(slug), big])
    judge(api)
    yes, no = publish(api, owner=slug, version=11), publish(api, owner=slug, version=9)
    judge(api)

    def why(event_id: str, **more: str) -> dict[str, Any]:
        path = f"/v1/triggers/{made['id']}/explain"
        answered = api.admin.get(path, params={"event": event_id, **more})
        assert answered.status_code == 200, answered.text
        found: dict[str, Any] = answered.json()["data"]
        return found

    launched, filtered = why(yes), why(no)
    assert (launched["verdict"], launched["stage"]) == ("launched", "launch")
    assert launched["workflowRunId"]
    assert launched["triggerVersion"] == 1
    assert [each["status"] for each in launched["history"]] == ["launched"]
    assert (filtered["verdict"], filtered["stage"]) == ("filtered", "predicates")
    leaf = filtered["predicates"]["inner"][1]
    assert (leaf["path"], leaf["actual"], leaf["outcome"]) == ("$.payload.version", [9], False)
    assert "found 9" in filtered["sentence"]
    for known, event_id in ((launched, yes), (filtered, no)):
        again = why(event_id, recompute="true")
        assert {**again, "recomputed": known["recomputed"]} == known


def test_whoever_may_not_read_events_sees_no_values_of_them(api: Server) -> None:
    slug = workflow(api)
    made = make(api, slug, predicates=[only(slug)])
    judge(api)
    key = publish(api, owner="somebody else entirely")
    judge(api)

    with api.as_scopes(Scope.WORKFLOWS_READ) as reader:
        shown = reader.get(f"/v1/triggers/{made['id']}/explain", params={"event": key})
        draft = {"trigger": spec(), "from": 0}
        refused = reader.post("/v1/triggers/backtest", json=draft)
        tried = reader.post("/v1/triggers/preview", json={"trigger": spec(), "eventId": key})

    assert shown.json()["data"]["verdict"] == "filtered"
    assert "somebody else" not in shown.text
    assert (refused.status_code, tried.status_code) == (403, 403)


def test_explaining_asks_for_an_event_and_knows_only_what_is_there(api: Server) -> None:
    made = make(api, workflow(api))

    assert api.admin.get(f"/v1/triggers/{made['id']}/explain").status_code == 400
    assert api.admin.get(f"/v1/triggers/{made['id']}/explain?event=nobody").status_code == 404
    assert api.admin.get(f"/v1/triggers/nobody/explain?event={publish(api)}").status_code == 404
    assert (
        api.admin.get(f"/v1/triggers/{made['id']}/explain?event=x&recompute=1").status_code == 400
    )


def test_events_of_a_paused_trigger_wait_and_are_all_judged_after_resume(api: Server) -> None:
    judge(api)
    slug = workflow(api)
    made = make(api, slug, predicates=[only(slug)])

    paused = api.admin.post(f"/admin/triggers/{made['id']}/pause", json={"reason": "a migration"})
    keys = [publish(api, owner=slug) for _ in range(3)]
    judge(api)

    assert paused.json()["data"] == {
        "triggerId": made["id"], "paused": True, "changed": True, "until": None,
        "reason": "a migration",
    }  # fmt: skip
    assert {d["status"] for d in deliveries(api, slug, made)} == {"pending"}
    told = acts(api, "penstock.trigger.paused")[0]
    assert (told["triggerId"], told["reason"]) == (made["id"], "a migration")

    resumed = api.admin.post(f"/admin/triggers/{made['id']}/resume")
    judge(api)

    assert resumed.json()["data"] == {"triggerId": made["id"], "paused": False, "changed": True}
    found = deliveries(api, slug, made)
    assert [(d["eventId"], d["status"]) for d in found] == [(k, "launched") for k in keys[::-1]]
    assert acts(api, "penstock.trigger.resumed")[0]["triggerId"] == made["id"]
    again = api.admin.post(f"/admin/triggers/{made['id']}/resume").json()["data"]
    assert again["changed"] is False


def test_an_operator_may_drop_what_waited_when_resuming(api: Server) -> None:
    judge(api)
    slug = workflow(api)
    made = make(api, slug, predicates=[only(slug)])
    api.admin.post(f"/admin/triggers/{made['id']}/pause", json={"forMs": 3_600_000})
    publish(api, owner=slug)
    judge(api)

    api.admin.post(f"/admin/triggers/{made['id']}/resume", json={"skip": True})
    judge(api)

    found = deliveries(api, slug, made)[0]
    assert (found["status"], found["reason"]) == ("skipped", "skipped_by_operator")


@pytest.mark.parametrize(
    "body",
    [
        {"forMs": 10}, {"forMs": "60000"}, {"until": "2020-01-01T00:00:00Z"}, {"until": "noon"},
        {"until": "2199-01-01T00:00:00Z", "forMs": 5_000}, {"reason": ""}, {"colour": "red"},
    ],
)  # fmt: skip
def test_a_pause_that_cannot_be_meant_is_refused(api: Server, body: dict[str, Any]) -> None:
    made = make(api, workflow(api))

    for path in (f"/admin/triggers/{made['id']}/pause", "/admin/sources/some.source/pause"):
        answered = api.admin.post(path, json=body)
        assert (answered.status_code, answered.json()["code"]) == (422, "body_invalid")


def test_a_disabled_or_unknown_trigger_cannot_be_paused(api: Server) -> None:
    made = make(api, workflow(api), status="disabled")

    assert api.admin.post(f"/admin/triggers/{made['id']}/pause").status_code == 404
    assert api.admin.post("/admin/triggers/nobody/pause").status_code == 404


def test_events_of_a_paused_source_wait_can_be_forced_or_cancelled_and_go_on(api: Server) -> None:
    slug = workflow(api)
    source = f"test.{slug.replace('-', '')}"
    made = make(api, slug, eventSource=source)
    assert api.admin.post(f"/admin/sources/{source}/pause").json()["data"]["paused"] is True
    keys = [f"{slug}-{n}" for n in range(4)]
    for key in keys:
        api.admin.post("/v1/events", json=event(id=key, source=source))
    judge(api)
    assert deliveries(api, slug, made) == []
    assert acts(api, "penstock.source.paused")[0]["source"] == source

    forced = api.admin.post(f"/admin/retries/events/{keys[1]}/force")
    cancelled = api.admin.post(f"/admin/retries/events/{keys[2]}/cancel", json={"reason": "no"})
    judge(api)

    assert (forced.status_code, cancelled.status_code) == (202, 200)
    waits, gone = (each.json()["data"]["event"] for each in (forced, cancelled))
    assert (waits["retryState"], waits["metadata"]["forcedBy"]) == ("pending", "admin")
    assert waits["nextAttemptAt"] == waits["metadata"]["forcedAt"]
    assert (gone["retryState"], gone["metadata"]["cancelledBy"]) == ("cancelled", "admin")
    assert gone["metadata"]["cancelledAt"] >= gone["createdAt"]
    assert [d["eventId"] for d in deliveries(api, slug, made)] == [keys[1]]
    assert acts(api, "penstock.retry.forced")[0]["targetId"] == keys[1]
    told = acts(api, "penstock.retry.cancelled")[0]
    assert (told["target"], told["targetId"], told["reason"]) == ("events", keys[2], "no")
    assert api.admin.post(f"/admin/retries/events/{keys[2]}/force").status_code == 404

    api.admin.post(f"/admin/sources/{source}/resume")
    judge(api)

    assert sorted(d["eventId"] for d in deliveries(api, slug, made)) == [keys[0], keys[1], keys[3]]
    assert api.admin.post(f"/admin/sources/{source}/resume").json()["data"]["changed"] is False


def test_what_became_of_events_at_a_deleted_trigger_can_still_be_read(api: Server) -> None:
    slug = workflow(api)
    made = make(api, slug, predicates=[only(slug)])
    judge(api)
    publish(api, owner=slug)
    judge(api)
    before = deliveries(api, slug, made)
    assert len(before) == 1

    assert api.admin.delete(at(slug, made)).status_code == 204
    judge(api)

    assert deliveries(api, slug, made) == before
    elsewhere = f"/workflows/{workflow(api)}/triggers/{made['id']}/deliveries"
    assert api.admin.get(elsewhere).status_code == 404


@pytest.mark.parametrize(
    ("body", "pointer", "detail"),
    [
        ({"forMs": 5}, "/forMs", "expected at least 1000, found less"),
        ({"forMs": "1h"}, "/forMs", "expected a whole number, found something else"),
        ({"until": "2026-03-01T00:00:00"}, "/until", "expected an instant with its offset"),
        ({"until": "noon"}, "/until", "expected an instant as RFC 3339, found other text"),
        ({"reason": ""}, "/reason", "expected at least 1 characters, found fewer"),
        ({"bogus": 1}, "/bogus", "expected no such field, found one"),
    ],
)  # fmt: skip
def test_a_pause_that_means_nothing_is_refused_in_our_words(
    api: Server, body: dict[str, Any], pointer: str, detail: str
) -> None:
    answered = api.admin.post("/admin/sources/some.source/pause", json=body)

    assert (answered.status_code, answered.json()["code"]) == (422, "body_invalid")
    (fault,) = answered.json()["errors"]
    assert fault["pointer"] == pointer
    assert fault["detail"].startswith(detail)


def test_a_waiting_delivery_is_cancelled_with_200_or_forced_with_202_once(api: Server) -> None:
    slug = workflow(api)
    made = make(api, slug, predicates=[only(slug)], throttleCount=1, throttleWindowMs=86_400_000)
    judge(api)
    for _ in range(3):
        publish(api, owner=slug)
    judge(api)
    third, second, _first = deliveries(api, slug, made)
    assert (second["status"], second["retryState"]) == ("throttled", "scheduled")

    forced = api.admin.post(f"/admin/retries/deliveries/{second['id']}/force")
    cancelled = api.admin.post(f"/admin/retries/deliveries/{third['id']}/cancel")
    judge(api)

    assert (forced.status_code, cancelled.status_code) == (202, 200)
    assert forced.json()["data"]["delivery"]["retryState"] == "pending"
    assert cancelled.json()["data"]["delivery"]["retryState"] == "cancelled"
    now = {d["id"]: d for d in deliveries(api, slug, made)}
    assert now[second["id"]]["status"] == "launched"
    assert now[third["id"]]["reason"] == "cancelled_by_operator"
    assert now[third["id"]]["retryMetadata"]["cancelledBy"] == "admin"
    for each in (second, third):
        answered = api.admin.post(f"/admin/retries/deliveries/{each['id']}/cancel")
        assert (answered.status_code, answered.json()["code"]) == (404, "not_found")


def test_a_live_trigger_back_tested_over_its_own_past_equals_its_record(api: Server) -> None:
    slug = workflow(api)
    made = make(api, slug, predicates=[only(slug)], maxConcurrency=2)
    judge(api)
    for n in range(5):
        publish(api, owner=slug, version=n)
    judge(api)
    api.admin.patch(at(slug, made), json={"maxConcurrency": 3})
    api.admin.post(f"/admin/triggers/{made['id']}/pause")
    publish(api, owner=slug)
    judge(api)

    answered = api.admin.post("/v1/triggers/backtest", json={"triggerId": made["id"]})

    found = answered.json()["data"]
    assert answered.status_code == 200
    assert (found["mode"], found["equalsRecord"], found["differences"]) == ("recorded", True, 0)
    assert found["deliveries"] == len(deliveries(api, slug, made)) == 6
    assert found["launches"] == len(deliveries(api, slug, made, status="launched"))


def test_a_record_is_compared_and_counted_from_a_position_on(api: Server) -> None:
    slug = workflow(api)
    made = make(
        api, slug, predicates=[only(slug)], idempotencyKeyExpression="{{ event.payload.version }}",
        parameterTemplate={"version": "{{ event.payload.version }}"},
    )  # fmt: skip
    judge(api)
    for version in (1, 2, 3):
        publish(api, owner=slug, version=version)
    judge(api)
    begins = api.house.history.head().position
    for version in (3, 4, 5):
        publish(api, owner=slug, version=version)
    judge(api)

    body = {"triggerId": made["id"], "from": begins}
    found = api.admin.post("/v1/triggers/backtest", json=body).json()["data"]

    assert (found["mode"], found["equalsRecord"], found["after"]) == ("recorded", True, str(begins))
    assert (found["deliveries"], found["matches"], found["launches"]) == (3, 3, 2)
    assert (found["distinctKeys"], found["skippedByReason"]) == (3, {"duplicate_key": 1})
    assert [each["parameters"] for each in found["samples"]] == [{"version": 4}, {"version": 5}]
    assert found["peakLaunchesPerMinute"] in (1, 2)  # a minute may end between the two
    kept = deliveries(api, slug, made, status="launched")
    assert [each["runKey"] for each in found["samples"]] == [each["runKey"] for each in kept[1::-1]]
    with api.as_scopes(Scope.WORKFLOWS_READ) as reader:
        hidden = reader.post("/v1/triggers/backtest", json=body).json()["data"]
    assert hidden == found | {"samples": None, "failureSamples": None}


def test_a_draft_is_back_tested_over_a_stretch_of_the_log_and_launches_nothing(api: Server) -> None:
    slug = workflow(api)
    begins = api.house.history.head().position
    for n in range(6):
        publish(api, owner=slug, version=n)
    draft = spec(
        predicates=[only(slug), {"path": "$.payload.version", "operator": "gte", "value": 2}],
        parameterTemplate={"version": "{{ event.payload.version }}"},
        throttleCount=3, throttleWindowMs=86_400_000,
    )  # fmt: skip

    body = {"trigger": draft, "workflow": slug, "from": begins, "runMs": 1000}
    found = api.admin.post("/v1/triggers/backtest", json=body).json()["data"]

    assert found["mode"] == "hypothetical"
    assert (found["eventsRead"], found["matches"], found["launches"]) == (6, 4, 3)
    assert [each["parameters"]["version"] for each in found["samples"]] == [2, 3, 4]
    assert found["complete"] is True
    assert found["coverage"]["firstPosition"] == str(begins + 1)
    assert api.admin.get(f"/workflows/{slug}/triggers").json()["data"]["triggers"] == []
    few = api.admin.post("/v1/triggers/backtest", json={**body, "eventsMax": 2}).json()["data"]
    assert (few["eventsRead"], few["complete"]) == (2, False)


def test_a_live_trigger_can_be_tried_over_any_stretch(api: Server) -> None:
    slug = workflow(api)
    begins = api.house.history.head().position
    publish(api, owner=slug)
    judge(api)
    made = make(api, slug, predicates=[only(slug)])

    body = {"triggerId": made["id"], "from": str(begins), "mode": "hypothetical"}
    found = api.admin.post("/v1/triggers/backtest", json=body).json()["data"]

    assert (found["mode"], found["matches"], found["launches"]) == ("hypothetical", 1, 1)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422), ({"triggerId": "x", "trigger": {}}, 422), ({"triggerId": "nobody"}, 404),
        ({"triggerId": "nobody", "mode": "hypothetical"}, 404),
        ({"triggerId": "x", "from": "noon"}, 400),
        ({"trigger": {"name": "x"}}, 422), ({"trigger": spec(), "mode": "recorded"}, 422),
        ({"trigger": spec(), "from": "noon"}, 400), ({"trigger": spec(), "from": 10**17}, 400),
        ({"trigger": spec(), "from": 2, "to": 1}, 400), ({"trigger": spec(), "runMs": -1}, 422),
    ],
)  # fmt: skip
def test_a_back_test_that_cannot_be_run_is_refused(
    api: Server, body: dict[str, Any], status: int
) -> None:
    publish(api)

    answered = api.admin.post("/v1/triggers/backtest", json=body)

    assert answered.status_code == status, answered.text


def test_a_record_can_be_compared_up_to_a_moment_that_has_come(api: Server) -> None:
    slug = workflow(api)
    made = make(api, slug, predicates=[only(slug)])
    publish(api, owner=slug)
    judge(api)

    def until(place: Any) -> Any:
        return api.admin.post("/v1/triggers/backtest", json={"triggerId": made["id"], "to": place})

    head = api.house.history.head().position
    assert until(head).json()["data"]["equalsRecord"] is True
    assert until(0).json()["data"]["deliveries"] == 0
    assert until("2026-01-01T00:00:00Z").json()["data"]["deliveries"] == 0
    assert (until(10**17).status_code, until("-5").status_code) == (400, 400)


def test_what_is_stored_sealed_is_shown_as_masked() -> None:
    sealed: Any = {"$enc": "1.abc", "subject": "s"}

    shown = covered({"a": [sealed, 1], "b": {"$enc": "x"}})

    assert shown == {"a": [{"$masked": True, "subject": "s"}, 1], "b": {"$enc": "x"}}


def test_a_draft_is_tried_with_one_event(api: Server) -> None:
    draft = spec(
        predicates=[{"path": "$.payload.version", "operator": "gt", "value": 3}],
        parameterTemplate={"v": "{{ event.payload.version }}", "of": "{{ trigger.workflowSlug }}"},
        runKeyTemplate="run {{ parameters.v }}",
        idempotencyKeyExpression="{{ event.id }}",
    )
    key = publish(api, version=4)

    body = {"trigger": draft, "eventId": key, "workflow": "ship"}
    stored = api.admin.post("/v1/triggers/preview", json=body).json()["data"]
    small = event(payload={"version": 2})
    made_up = api.admin.post(
        "/v1/triggers/preview", json={"trigger": draft, "event": small}
    ).json()["data"]

    assert (stored["wanted"], stored["matches"], stored["wouldLaunch"]) == (True, True, True)
    assert stored["parameters"] == {"v": 4, "of": "ship"}
    assert stored["idempotencyKey"] == key
    assert stored["runKey"].startswith("run-4")
    assert (made_up["matches"], made_up["wouldLaunch"]) == (False, False)
    assert made_up["predicates"]["inner"][0]["actual"] == [2]


def test_what_cannot_be_rendered_is_a_fault_of_the_preview(api: Server) -> None:
    bomb = "{% for a in (1..9999) %}{% for b in (1..9999) %}x{% endfor %}{% endfor %}"
    body = {"trigger": spec(parameterTemplate={"a": bomb}), "event": event()}

    found = api.admin.post("/v1/triggers/preview", json=body).json()["data"]

    assert found["wouldLaunch"] is False
    assert found["faults"][0]["pointer"] == "/parameterTemplate/a"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422), ({"trigger": spec()}, 422), ({"trigger": {}, "event": {}}, 422),
        ({"trigger": spec(), "event": {"type": 5}}, 422),
        ({"trigger": spec(), "eventId": "nobody"}, 404),
    ],
)  # fmt: skip
def test_a_preview_that_cannot_be_made_is_refused(
    api: Server, body: dict[str, Any], status: int
) -> None:
    assert api.admin.post("/v1/triggers/preview", json=body).status_code == status
