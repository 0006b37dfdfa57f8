"""The description of the API fits the routes, and real answers fit the description."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest
from tests.api.support import Server, event

from penstock.api.reference import ANSWERS, BODIES, COMPONENTS, PARAMETERS
from penstock.api.routes import ROWS
from penstock.store.query import read_query

KEYS = {f"{row.method} {row.path}" for row in ROWS}
BODILESS = {
    "POST /v1/ws-tickets",
    "POST /workflow-runs/{run_id}/cancel",
    "POST /workflow-runs/{run_id}/replay",
    "POST /admin/retries/workflow-steps/{step_id}/cancel",
    "POST /admin/retries/workflow-steps/{step_id}/force",
}


@pytest.fixture(scope="module")
def described(api: Server) -> dict[str, Any]:
    found: dict[str, Any] = api.admin.get("/openapi.json").json()
    return found


def test_only_routes_that_exist_are_described() -> None:
    assert set(PARAMETERS) | set(BODIES) | set(ANSWERS) <= KEYS


def test_every_route_that_reads_a_body_describes_it() -> None:
    reading = {key for key in KEYS if key.startswith(("POST ", "PUT ", "PATCH "))}

    assert set(BODIES) == reading - BODILESS


def test_every_operation_has_a_summary_a_scope_and_its_problems(described: dict[str, Any]) -> None:
    for path, item in described["paths"].items():
        for operation in item.values():
            assert operation["summary"].endswith("."), path
            assert operation["description"].startswith("Needs ")
            assert operation["security"] == [{"token": []}]
            assert "application/problem+json" in operation["responses"]["4XX"]["content"]
            named = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path))


def test_operation_ids_are_unique(described: dict[str, Any]) -> None:
    ids = [op["operationId"] for item in described["paths"].values() for op in item.values()]

    assert len(ids) == len(set(ids))


def test_the_description_is_an_openapi_document_without_loose_references(
    described: dict[str, Any],
) -> None:
    text = json.dumps(described)
    for name in re.findall(r'"#/components/schemas/(\w+)"', text):
        assert name in described["components"]["schemas"]
    assert described["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_every_parameter_of_the_event_list_is_one_that_is_read() -> None:
    samples = {
        "from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "severity": "info",
        "limit": "5", "jsonPath": "$.a", "type": "a.b", "asOf": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    for name in PARAMETERS["GET /admin/events"]:
        given = name.replace("{key}", "userId")
        read_query([(given, samples.get(name, "x"))], tenant_id="default", also=("upcast",))


def test_a_real_problem_fits_its_schema(api: Server) -> None:
    fits = jsonschema_rs.validator_for(COMPONENTS["Problem"])

    for answered in (
        api.stranger.get("/admin/events"),
        api.admin.get("/admin/events?limit=x"),
        api.admin.post("/v1/events", json=event(type="no.such.type")),
        api.admin.get("/nowhere"),
    ):
        assert fits.is_valid(answered.json())


def test_a_real_event_fits_its_schema() -> None:
    assert jsonschema_rs.validator_for(COMPONENTS["Event"]).is_valid(event(tags={"a": "b"}))
