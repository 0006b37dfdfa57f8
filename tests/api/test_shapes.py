"""Over HTTP every shape of event is published, stored in the one shape, and refused in its own."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.support import Server

from penstock.base.ids import uuid7
from penstock.catalog.development.issues import ISSUE_ASSIGNED, IssueAssigned

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def domain(**changes: Any) -> dict[str, Any]:
    return {
        "id": uuid7(),
        "type": "ISSUE.ASSIGNED.SUCCESS",
        "timestamp": "2026-01-31T10:30:00.123Z",
        "tags": {"sprint": "7"},
        "metadata": {"workflowVersion": "1.0.0", "eventSource": "plugin", "correlationId": "c-1"},
        "data": {"issueId": 42, "assignee": "ana"},
        **changes,
    }


def governed(**changes: Any) -> dict[str, Any]:
    return {
        "id": uuid7(),
        "type": "metadata.deprecated",
        "version": "1.0.0",
        "tenantId": "default",
        "source": "metadata-studio.api",
        "createdAt": "2025-12-01T08:00:00.000Z",
        "traceContext": {"traceId": TRACE[3:35], "spanId": TRACE[36:52]},
        "payload": {
            "entityId": "meta-456",
            "canonicalKey": "eps",
            "deprecatedBy": {"actorId": "cfo", "actorType": "HUMAN"},
        },
        **changes,
    }


def published(api: Server, event: dict[str, Any]) -> dict[str, Any]:
    """The event as it is read back."""
    response = api.admin.post("/v1/events", json=event)
    assert response.status_code == 202, response.text
    found = api.admin.get(f"/admin/events/{event['id']}")
    assert found.status_code == 200, found.text
    data: dict[str, Any] = found.json()["data"]["event"]
    return data


def test_a_domain_event_is_published_enriched_and_read_back_typed(api: Server) -> None:
    found = published(api, domain())

    assert found["source"] == "plugin"
    assert found["tags"] == {"issueId": "42", "sprint": "7"}
    assert found["correlationId"] == "c-1"
    assert found["occurredAt"] == "2026-01-31T10:30:00.123Z"
    assert found["metadata"] == {"workflowVersion": "1.0.0", "eventSource": "plugin"}
    assert ISSUE_ASSIGNED.read(found) == IssueAssigned(issue_id="42", assignee="ana")


def test_a_governed_event_is_published_with_its_version_and_trace(api: Server) -> None:
    found = published(api, governed())

    assert (found["schemaVersion"], found["traceparent"]) == (1, TRACE)
    assert found["tags"] == {"entityId": "meta-456", "canonicalKey": "eps"}
    assert (found["severity"], found["severityRule"]) == ("warning", "declared")


@pytest.mark.parametrize("make", [domain, governed], ids=["domain", "governed"])
def test_the_same_event_again_is_a_duplicate_in_any_shape(api: Server, make: Any) -> None:
    event = make()
    published(api, event)

    again = api.admin.post("/v1/events", json=event)

    assert again.json()["data"]["status"] == "duplicate"


@pytest.mark.parametrize(
    ("event", "code", "pointer"),
    [
        (domain(timestamp="2026-01-31T10:30:00"), "envelope_invalid", "/timestamp"),
        (domain(id="not-a-uuid"), "envelope_invalid", "/id"),
        (domain(tags={"issueId": 42}), "envelope_invalid", "/tags/issueId"),
        (domain(type="ISSUE.DREAMT"), "type_unknown", "/type"),
        (domain(schemaVersion=9), "version_unknown", "/schemaVersion"),
        (domain(schemaHash="0" * 64), "version_unknown", "/schemaHash"),
        (domain(data={"mode": "party"}), "payload_invalid", "/data/mode"),
        (governed(version="2.0.0"), "version_unknown", "/version"),
        (governed(createdAt="yesterday"), "envelope_invalid", "/createdAt"),
    ],
)
def test_a_refusal_has_a_code_a_place_and_a_remedy_and_stores_nothing(
    api: Server, event: dict[str, Any], code: str, pointer: str
) -> None:
    response = api.admin.post("/v1/events", json=event)
    problem = response.json()

    assert response.status_code == 422
    assert (problem["code"], problem["errors"][0]["pointer"]) == (code, pointer)
    assert problem["remedy"]
    assert problem["deadLetterId"]
    assert api.admin.get(f"/admin/events/{event['id']}").status_code == 404
