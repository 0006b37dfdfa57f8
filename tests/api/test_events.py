"""Events are read back by filter, page and id, by their own tenant only, and nothing breaks it."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest
from tests.api.support import Server, event

from penstock.access.token import Scope


@pytest.fixture
def source(api: Server) -> str:
    """Five events of a source of their own."""
    mine = f"s{uuid.uuid4().hex[:8]}.api"
    events = [
        event(source=mine, correlationId=f"c{n}", tags={"n": str(n)}, id=f"{mine}-{n}")
        for n in range(5)
    ]
    assert api.admin.post("/v1/events", json=events).status_code == 202
    return mine


def listed(client: httpx.Client, **query: Any) -> dict[str, Any]:
    answered = client.get("/admin/events", params=query)
    assert answered.status_code == 200, answered.text
    found: dict[str, Any] = answered.json()
    return found


def test_a_list_has_the_shape_of_the_contract(api: Server, source: str) -> None:
    found = listed(api.admin, source=source, limit=2)

    assert set(found) == {"data", "schema"}
    assert set(found["data"]) == {"events", "page"}
    assert found["data"]["page"]["hasMore"] is True
    assert found["data"]["page"]["limit"] == 2
    assert found["schema"]["totalSamples"] == 2
    newest = found["data"]["events"][0]
    assert newest["id"] == f"{source}-4"
    assert isinstance(newest["position"], str)
    assert {"severity", "links", "derived", "receivedAt", "schemaHash"} <= set(newest)


def test_following_the_link_header_shows_every_event_once(api: Server, source: str) -> None:
    seen: list[str] = []
    path = f"/admin/events?source={source}&limit=2"
    while path:
        answered = api.admin.get(path)
        seen += [each["id"] for each in answered.json()["data"]["events"]]
        path = answered.links.get("next", {}).get("url", "")

    assert seen == [f"{source}-{n}" for n in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({"correlationId": "c3"}, [3]),
        ({"tag.n": "1"}, [1]),
        ({"type": "metastore.record.*"}, [4, 3, 2, 1, 0]),
        ({"type": "metastore.**"}, [4, 3, 2, 1, 0]),
        ({"type": "asset.produced"}, []),
        ({"severity": "critical"}, []),
        ({"from": "2100-01-01T00:00:00Z"}, []),
        ({"jsonPath": '$.key == "frontend-search"'}, [4, 3, 2, 1, 0]),
        ({"jsonPath": '$.payload.key == "other"'}, []),
    ],
)
def test_filters_narrow_the_list(
    api: Server, source: str, query: dict[str, str], ids: list[int]
) -> None:
    found = listed(api.admin, source=source, **query)

    assert [each["id"] for each in found["data"]["events"]] == [f"{source}-{n}" for n in ids]


def test_one_event_is_shown_whole(api: Server, source: str) -> None:
    answered = api.admin.get(f"/admin/events/{source}-2")

    assert answered.status_code == 200
    assert answered.json()["data"]["event"]["correlationId"] == "c2"


@pytest.mark.parametrize("event_id", ["none", "%00", "a" * 500, "..", "%F0%9F%92%A9"])
def test_an_unknown_event_is_404(api: Server, event_id: str) -> None:
    assert api.admin.get(f"/admin/events/{event_id}").status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        "limit=ten", "limit=", "cursor=forged", "cursor=" + "A" * 32, "from=yesterday", "to=2026",
        "severity=loud", "type=%20", "surprise=1", "jsonPath=$.[", "jsonPath=%00", "tag.=x",
        "jsonPath=$ ? (@ like_regex \"(\")", "type=" + "*" * 50, "correlationId=" + "x" * 5000,
        "source=%ED%A0%80", "from=9999-12-31T23:59:60%2B23:59",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/admin/events", "/admin/events/facets"])
def test_a_question_that_cannot_be_run_is_400_with_its_parameter(
    api: Server, path: str, query: str
) -> None:
    answered = api.admin.get(f"{path}?{query}")

    assert answered.status_code in (200, 400)
    if answered.status_code == 400:
        problem = answered.json()
        assert problem["code"] == "query_invalid"
        assert problem["errors"][0]["pointer"]


def test_facets_count_the_values_of_a_selection(api: Server, source: str) -> None:
    answered = api.admin.get(
        "/admin/events/facets", params={"source": source, "keys": "type,tag.n"}
    )

    assert answered.status_code == 200
    facets = answered.json()["data"]["facets"]
    assert facets["type"]["values"] == [{"value": "metastore.record.updated", "count": 5}]
    assert len(facets["tag.n"]["values"]) == 5


def test_a_histogram_spreads_a_selection_over_time(api: Server, source: str) -> None:
    answered = api.admin.get("/admin/events/histogram", params={"source": source, "buckets": "4"})

    buckets = answered.json()["data"]["buckets"]
    assert sum(bucket["count"] for bucket in buckets) == 5
    assert len(buckets) == 4


def test_a_tenant_sees_its_own_events_and_no_trace_of_others(api: Server, source: str) -> None:
    everything = (Scope.EVENTS_PUBLISH, Scope.EVENTS_READ, Scope.EVENTS_READ_RAW)
    with api.as_scopes(*everything, tenant_id="acme") as acme:
        mine = event(source=source, id="acme-1")
        assert acme.post("/v1/events", json=mine).status_code == 202
        # The same id in another tenant is another event, not a conflict.
        assert (
            acme.post("/v1/events", json=event(source=source, id=f"{source}-0")).json()["data"][
                "status"
            ]
            == "accepted"
        )
        acme.post("/v1/events", json=event(type="no.such.type", source=source))

        seen = listed(acme, source=source)["data"]["events"]
        letters = acme.get("/admin/dead-letters").json()["data"]["deadLetters"]
        facets = acme.get("/admin/events/facets", params={"source": source}).json()["data"]
        health = acme.get("/admin/event-health").json()["data"]

        assert {each["id"] for each in seen} == {"acme-1", f"{source}-0"}
        assert {each["tenantId"] for each in seen} == {"acme"}
        assert acme.get(f"/admin/events/{source}-1").status_code == 404
        assert len(letters) == 1
        assert facets["sampled"] == 2
        assert [each["source"] for each in health["metrics"]["sources"]] == [source]
        assert health["queues"]["ingress"]["counts"] is None
        for path in ("/admin/ledger", "/admin/queue-health", "/metrics"):
            assert acme.get(path).status_code == 403
    assert "acme-1" not in str(listed(api.admin, source=source))


def test_a_cursor_of_one_tenant_is_worthless_to_another(api: Server, source: str) -> None:
    cursor = listed(api.admin, source=source, limit=1)["data"]["page"]["nextCursor"]
    with api.as_scopes(Scope.EVENTS_READ, tenant_id="acme") as acme:
        answered = acme.get("/admin/events", params={"source": source, "cursor": cursor})

    assert answered.status_code == 400


def test_a_body_cannot_choose_another_tenant_than_its_token(api: Server) -> None:
    with api.as_scopes(Scope.EVENTS_PUBLISH, tenant_id="acme") as acme:
        answered = acme.post("/v1/events", json=event(tenantId="default"))

    assert (answered.status_code, answered.json()["code"]) == (422, "tenant_mismatch")
