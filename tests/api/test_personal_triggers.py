"""A trigger over HTTP that reads personal data is refused, or its answers warn of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.personal import PERSONAL, TYPE, serving
from tests.api.support import Server

from penstock.access.token import Scope
from penstock.base.on_postgres import EmbeddedPostgres

_names = itertools.count()
BLIND = {"path": "$.payload.email", "operator": "equals", "value": "alice@example.org"}
PASSED = {"parameterTemplate": {"to": "{{ event.payload.email }}"}}
HANDED = f"/email is personal in {TYPE}: the run is handed its ciphertext"


@pytest.fixture(scope="module")
def api(
    server: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    with serving(server, template, tmp_path_factory.mktemp("personal-triggers"), {}) as found:
        yield found


@pytest.fixture
def place(api: Server) -> str:
    """Where a workflow of its own keeps its triggers."""
    return triggers_of(api, {"to": "nobody"})


def triggers_of(api: Server, parameters: dict[str, Any]) -> str:
    slug = f"flow-{next(_names)}"
    step = {
        "id": "mail", "name": "Mail", "type": "function", "handler": "noop",
        "parameters": parameters,
    }  # fmt: skip
    made = api.admin.post("/workflows", json={"slug": slug, "name": "A flow", "steps": [step]})
    assert made.status_code == 201, made.text
    return f"/workflows/{slug}/triggers"


def spec(event_type: str = TYPE, **said: Any) -> dict[str, Any]:
    return {"name": "greet", "eventType": event_type, **said}


def test_comparing_a_personal_field_is_422_with_pointer_and_remedy(api: Server, place: str) -> None:
    answered = api.admin.post(place, json=spec(predicates=[BLIND]))

    problem = answered.json()
    assert (answered.status_code, problem["code"]) == (422, "trigger_reads_personal")
    assert [each["pointer"] for each in problem["errors"]] == ["/predicates/0/path"]
    assert f"/email is personal in {TYPE}" in problem["detail"]
    assert ".subject" in problem["remedy"]
    assert "alice" not in answered.text
    assert list(problem["fieldErrors"]) == ["predicates"]
    assert api.admin.get(place).json()["data"]["triggers"] == []


def test_a_change_to_compare_a_personal_field_is_refused_and_changes_nothing(
    api: Server, place: str
) -> None:
    made = api.admin.post(place, json=spec()).json()["data"]

    plain = api.admin.patch(f"{place}/{made['id']}", json={"predicates": [BLIND]})
    merged = api.admin.patch(
        f"{place}/{made['id']}",
        json={"predicates": [BLIND]},
        headers={"Content-Type": "application/merge-patch+json"},
    )

    assert [each.json()["code"] for each in (plain, merged)] == ["trigger_reads_personal"] * 2
    assert api.admin.get(f"{place}/{made['id']}").json()["data"] == made


def test_handing_it_on_is_kept_with_a_warning_in_every_answer_about_the_trigger(
    api: Server, place: str
) -> None:
    made = api.admin.post(place, json=spec(**PASSED))

    warned = [{"pointer": "/parameterTemplate", "detail": HANDED, "refused": False}]
    assert (made.status_code, made.json()["data"]["warnings"]) == (201, warned)
    own = f"{place}/{made.json()['data']['id']}"
    assert api.admin.get(own).json()["data"]["warnings"] == warned
    fixed = api.admin.patch(own, json={"parameterTemplate": None}).json()["data"]
    assert "warnings" not in fixed


def test_a_step_that_reads_it_is_a_warning_of_the_trigger(api: Server) -> None:
    place = triggers_of(api, {"to": "{{ run.trigger.event.payload.email }}"})

    data = api.admin.post(place, json=spec()).json()["data"]

    step = HANDED.replace("the run", "step mail of the workflow")
    assert data["warnings"] == [{"pointer": "", "detail": step, "refused": False}]


def test_a_draft_that_would_be_refused_can_be_tried_and_says_so(api: Server) -> None:
    draft = spec(predicates=[BLIND])
    event = {"type": TYPE, "source": "shop.web", "payload": {"customerId": "c"}}

    tried = api.admin.post("/v1/triggers/backtest", json={"trigger": draft, "from": 0})
    shown = api.admin.post("/v1/triggers/preview", json={"trigger": draft, "event": event})

    for answered in (tried, shown):
        (warning,) = answered.json()["data"]["warnings"]
        assert (warning["pointer"], warning["refused"]) == ("/predicates/0/path", True)


def test_a_trigger_is_warned_of_a_mark_that_came_later_and_can_be_disabled(
    api: Server, place: str
) -> None:
    late = f"shop.guest.n{next(_names)}"
    open_schema = {"type": "object", "properties": {"email": {"type": "string"}}}
    marked = {**open_schema, "properties": {"email": {"type": "string", **PERSONAL}}}
    register(api, late, open_schema)
    made = api.admin.post(place, json=spec(late, predicates=[BLIND])).json()["data"]
    assert "warnings" not in made
    told = api.admin.post(
        "/v1/append",
        json={"events": [{"id": f"evt-{late}", "type": late, "source": "shop.web", "payload": {}}]},
    )
    assert told.status_code == 200, told.text

    register(api, late, marked)

    own = f"{place}/{made['id']}"
    for path in (own, f"/v1/triggers/{made['id']}/explain?event=evt-{late}"):
        (warning,) = api.admin.get(path).json()["data"]["warnings"]
        assert (warning["pointer"], warning["refused"]) == ("/predicates/0/path", True)
    assert api.admin.patch(own, json={"status": "disabled"}).status_code == 200


def test_whoever_marks_a_field_is_told_which_triggers_read_it(api: Server, place: str) -> None:
    late = f"shop.guest.n{next(_names)}"
    email, marked = ({"type": "string", **said} for said in ({}, PERSONAL))
    register(api, late, {"type": "object", "properties": {"email": email}})
    for name, said in (
        ("compares", {"predicates": [BLIND]}), ("passes", PASSED), ("neither", {}),
        ("asleep", {"predicates": [BLIND], "status": "disabled"}),
    ):  # fmt: skip
        made = api.admin.post(place, json=spec(late, **said) | {"name": name})
        assert made.status_code == 201, made.text
    proposed = {"eventType": late, "schema": {"type": "object", "properties": {"email": marked}}}
    stranger = api.as_scopes(Scope.EVENTS_READ, tenant_id="acme")

    checked = api.admin.post("/admin/event-schemas/check", json=proposed).json()["data"]
    theirs = stranger.post("/admin/event-schemas/check", json=proposed).json()["data"]
    registered = register(api, late, proposed["schema"])
    again = register(api, late, proposed["schema"])

    slug = place.split("/")[2]
    assert [(w["trigger"], w["pointer"], w["refused"]) for w in checked["warnings"]] == [
        (f"{slug}/compares", "/predicates/0/path", True),
        (f"{slug}/passes", "/parameterTemplate", False),
    ]
    assert registered["warnings"] == checked["warnings"]
    assert {each["trigger"] for each in theirs["warnings"]} == {"of another tenant"}
    assert not checked["breaking"], "who marks a field is told, not held up"
    assert "warnings" not in again


def register(api: Server, event_type: str, schema: Any) -> Any:
    body = {"eventType": event_type, "schema": schema}
    answered = api.admin.post("/admin/event-schemas", json=body)
    assert answered.status_code in (200, 201), answered.text
    return answered.json()["data"]
