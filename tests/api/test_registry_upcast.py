"""Payloads of older versions are shown upcasted, and as they were stored to whoever asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.support import Server, database_of, opened, running, settings_for
from websockets.sync.client import connect

from penstock.base.on_postgres import EmbeddedPostgres
from penstock.catalog.vocabularies import ALL
from penstock.envelope.envelope import JsonObject
from penstock.registry.declare import EventType, Payload, Vocabulary

TYPE = "shop.order.placed"
TOKEN = "an-admin-token-for-tests-only"


class Old(Payload):
    """An order was placed."""

    total: int | str


class New(Payload):
    """An order was placed."""

    amount: int


def rename(payload: JsonObject) -> JsonObject:
    return {"amount": int(str(payload["total"]))}


SHOP_1 = Vocabulary("shop", (EventType(TYPE, Old),))
SHOP_2 = Vocabulary("shop", (EventType(TYPE, New, version=2, upcasts={1: rename}),))


@pytest.fixture(scope="module")
def api(
    server: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server that stored events of version 1, and whose code then declared version 2."""
    folder = tmp_path_factory.mktemp("upcast")
    with (
        database_of(server, template) as database,
        opened(settings_for(database, folder)) as house,
        running(house, database) as found,
    ):
        house.book.declare((*ALL, SHOP_1))
        for event_id, total in (("good", 5), ("bad", "five")):
            event = {"id": event_id, "type": TYPE, "source": "s.t", "payload": {"total": total}}
            assert found.admin.post("/v1/events", json=event).status_code == 202
        assert house.book.declare((*ALL, SHOP_2)) == ()
        fresh = {"id": "new", "type": TYPE, "source": "s.t", "payload": {"amount": 7}}
        assert found.admin.post("/v1/events", json=fresh).status_code == 202
        yield found


def one(api: Server, event_id: str, **query: str) -> Any:
    answered = api.admin.get(f"/admin/events/{event_id}", params=query)
    assert answered.status_code == 200
    return answered.json()["data"]["event"]


def test_an_old_event_is_shown_at_the_newest_version_and_says_so(api: Server) -> None:
    shown = one(api, "good")

    assert shown["payload"] == {"amount": 5}
    assert (shown["schemaVersion"], shown["upcastTo"]) == (1, 2)


def test_the_original_is_shown_to_whoever_asks(api: Server) -> None:
    shown = one(api, "good", upcast="false")

    assert shown["payload"] == {"total": 5}
    assert (shown["schemaVersion"], shown.get("upcastTo")) == (1, None)


def test_an_event_that_cannot_be_upcasted_shows_the_original_and_why(api: Server) -> None:
    shown = one(api, "bad")

    assert shown["payload"] == {"total": "five"}
    assert shown["upcastFailed"]["to"] == 2
    assert "ValueError" in shown["upcastFailed"]["detail"]


@pytest.mark.parametrize(
    ("query", "payloads"),
    [
        ({}, [{"amount": 7}, {"total": "five"}, {"amount": 5}]),
        ({"upcast": "true"}, [{"amount": 7}, {"total": "five"}, {"amount": 5}]),
        ({"upcast": "false"}, [{"amount": 7}, {"total": "five"}, {"total": 5}]),
    ],
)
def test_a_list_shows_them_likewise(
    api: Server, query: dict[str, str], payloads: list[Any]
) -> None:
    found = api.admin.get("/admin/events", params={"type": TYPE, **query}).json()

    assert [each["payload"] for each in found["data"]["events"]] == payloads


def test_a_filter_sees_what_is_stored_and_the_next_page_keeps_the_choice(api: Server) -> None:
    path = f"/admin/events?type={TYPE}&jsonPath=$.total&upcast=false&limit=1"
    first = api.admin.get(path)
    second = api.admin.get(first.links["next"]["url"])

    found = [answered.json()["data"]["events"][0]["payload"] for answered in (first, second)]
    assert found == [{"total": "five"}, {"total": 5}]


@pytest.mark.parametrize("path", ["/admin/events", "/admin/events/good", "/v1/events/stream"])
def test_any_other_choice_is_400(api: Server, path: str) -> None:
    answered = api.admin.get(path, params={"upcast": "perhaps"})

    assert (answered.status_code, answered.json()["code"]) == (400, "query_invalid")


def first_of(api: Server, query: str) -> Any:
    """The first event that the live stream sends."""
    with api.admin.stream("GET", f"/v1/events/stream?after=0&type={TYPE}{query}") as response:
        for line in response.iter_lines():
            if line.startswith("data: ") and "workflow.event.received" in line:
                return json.loads(line[6:])["data"]["event"]
    raise AssertionError("the stream ended")


@pytest.mark.parametrize(
    ("query", "payload"), [("", {"amount": 5}), ("&upcast=false", {"total": 5})]
)
def test_the_stream_shows_them_likewise(api: Server, query: str, payload: Any) -> None:
    assert first_of(api, query)["payload"] == payload


@pytest.mark.parametrize(
    ("query", "protocols", "payload"),
    [
        ("", [], {"amount": 5}),
        ("&upcast=false", [], {"total": 5}),
        ("&upcast=false", ["penstock.v1.json"], {"total": 5}),
        ("", ["penstock.v1.as-stored.json"], {"total": 5}),
    ],
)
def test_so_does_the_websocket(api: Server, query: str, protocols: list[Any], payload: Any) -> None:
    url = f"ws://127.0.0.1:{api.port}/ws?after=0&type={TYPE}{query}"
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    with connect(
        url, additional_headers=bearer, subprotocols=protocols or None, proxy=None
    ) as socket:
        while (frame := json.loads(socket.recv(10)))["type"] != "workflow.event.received":
            pass

    assert frame["data"]["event"]["payload"] == payload


def test_a_restart_finds_the_same_versions(api: Server) -> None:
    before = api.house.book.current().versions

    assert api.house.book.declare((*ALL, SHOP_2)) == ()

    assert api.house.book.refresh().versions == before
