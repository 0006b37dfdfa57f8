"""Every read shows the same of personal data: in the clear with the scope, else masked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from tests.api.personal import TYPE, serving
from tests.api.support import Server
from websockets.sync.client import connect

from penstock.access.token import Scope
from penstock.base.on_postgres import EmbeddedPostgres

ALICE = {"email": "alice@example.org", "person": {"name": "Alice Liddell", "at": ["Oxford"]}}
SECRETS = ("alice@example.org", "Alice Liddell", "Oxford")
Read: TypeAlias = Callable[[Server, str, str], tuple[dict[str, Any], str]]


@pytest.fixture(scope="module")
def api(
    server: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("personal-reads")
    with serving(server, template, folder, {"cust": "/customerId"}) as found:
        yield found


def tell(api: Server, customer: str, **payload: Any) -> str:
    """Append what happened to a customer; the position of it."""
    event = {"type": TYPE, "source": "shop.web", "payload": {"customerId": customer, **payload}}
    answer = api.admin.post("/v1/append", json={"events": [event]})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["data"]["after"])


# Ways to read: the payload of a customer's newest event or state, and all that came with it.


def got(api: Server, token: str, path: str, **params: Any) -> tuple[Any, str]:
    answer = api.client(token).get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"], answer.text


def of_the_list(api: Server, token: str, customer: str) -> tuple[dict[str, Any], str]:
    data, text = got(api, token, "/admin/events", **{"tag.cust": customer})
    return data["events"][0]["payload"], text


def of_one_event(api: Server, token: str, customer: str) -> tuple[dict[str, Any], str]:
    listed, _ = got(api, token, "/admin/events", **{"tag.cust": customer})
    data, text = got(api, token, f"/admin/events/{listed['events'][0]['id']}")
    return data["event"]["payload"], text


def of_a_decision(api: Server, token: str, customer: str) -> tuple[dict[str, Any], str]:
    query = {"items": [{"types": [TYPE], "tags": {"cust": customer}}]}
    answer = api.client(token).post("/v1/decide/read", json={"query": query})
    return answer.json()["data"]["events"][-1]["payload"], answer.text


def of_the_state(api: Server, token: str, customer: str) -> tuple[dict[str, Any], str]:
    data, text = got(api, token, "/v1/state", tags=f"cust:{customer}")
    return data["state"], text


def of_the_difference(api: Server, token: str, customer: str) -> tuple[dict[str, Any], str]:
    data, text = got(api, token, "/v1/state/diff", **{"tags": f"cust:{customer}", "from": "0"})
    return {change["pointer"][1:]: change["after"] for change in data["changes"]}, text


def of_a_replay(api: Server, token: str, customer: str) -> tuple[dict[str, Any], str]:
    data, text = got(api, token, "/v1/replay", tags=f"cust:{customer}")
    (step,) = data["steps"]
    changed = {change["pointer"][1:]: change["after"] for change in step["changes"]}
    assert changed == step["event"]["payload"]
    return changed, text


def of_the_rest_of_a_replay(api: Server, token: str, customer: str) -> tuple[dict[str, Any], str]:
    """What a replay starts with that begins at the end."""
    head, _ = got(api, token, "/v1/state", tags=f"cust:{customer}")
    begins = {"tags": f"cust:{customer}", "from": head["asOf"]["position"]}
    data, text = got(api, token, "/v1/replay", **begins)
    return data["state"], text


def of_server_sent_events(api: Server, token: str, customer: str) -> tuple[dict[str, Any], str]:
    asked = {"after": "0", "tag.cust": customer}
    with api.client(token).stream("GET", "/v1/events/stream", params=asked) as stream:
        for line in stream.iter_lines():
            if line.startswith("data:") and customer in line:
                return json.loads(line[5:])["data"]["event"]["payload"], line
    raise AssertionError("the stream ended")


def over(api: Server, token: str, customer: str, style: str, *, live: bool) -> dict[str, Any]:
    """The event of a customer as a WebSocket sends it: from the log, or as it happens."""
    after = "" if live else "&after=0"
    address = f"ws://127.0.0.1:{api.port}/ws?tag.cust={customer}{after}"
    headers = {"Authorization": f"Bearer {token}"}
    with connect(address, additional_headers=headers, subprotocols=[style]) as socket:  # type: ignore[list-item]
        assert "connection.ack" in str(socket.recv(timeout=10))
        if live:
            tell(api, customer, rooms=3, **ALICE)
        while True:
            text = str(socket.recv(timeout=10))
            if customer in text:
                return json.loads(text)  # type: ignore[no-any-return]


def of_a_websocket(api: Server, token: str, customer: str) -> tuple[dict[str, Any], str]:
    frame = over(api, token, customer, "penstock.v1.json", live=False)
    return frame["data"]["event"]["payload"], json.dumps(frame)


def of_a_websocket_as_stored(api: Server, token: str, customer: str) -> tuple[dict[str, Any], str]:
    frame = over(api, token, customer, "penstock.v1.as-stored.json", live=False)
    return frame["data"]["event"]["payload"], json.dumps(frame)


def of_cloudevents(api: Server, token: str, customer: str) -> tuple[dict[str, Any], str]:
    frame = over(api, token, customer, "cloudevents.json", live=False)
    return frame["data"], json.dumps(frame)


READS: tuple[Read, ...] = (
    of_the_list, of_one_event, of_a_decision, of_the_state, of_the_difference, of_a_replay,
    of_the_rest_of_a_replay, of_server_sent_events, of_a_websocket, of_a_websocket_as_stored,
    of_cloudevents,
)  # fmt: skip


@pytest.mark.parametrize("read", READS)
def test_without_the_scope_personal_data_is_masked(api: Server, read: Read) -> None:
    customer = f"masked-{read.__name__}"
    tell(api, customer, rooms=3, **ALICE)

    payload, text = read(api, api.token(Scope.EVENTS_READ), customer)

    subject = payload["email"]["subject"]
    masked = {"$masked": True, "subject": subject}
    assert payload == {"customerId": customer, "email": masked, "person": masked, "rooms": 3}
    assert "$enc" not in text
    assert [secret for secret in SECRETS if secret in text] == []


@pytest.mark.parametrize("read", READS)
def test_with_the_scope_personal_data_is_in_the_clear(api: Server, read: Read) -> None:
    customer = f"clear-{read.__name__}"
    tell(api, customer, rooms=3, **ALICE)

    payload, text = read(api, api.token(Scope.EVENTS_READ, Scope.PII_READ), customer)

    assert payload == {"customerId": customer, **ALICE, "rooms": 3}
    assert "$enc" not in text


@pytest.mark.parametrize("read", READS)
def test_once_erased_it_is_so_for_everybody(api: Server, read: Read) -> None:
    customer = f"erased-{read.__name__}"
    tell(api, customer, rooms=3, **ALICE)
    erased = api.admin.post("/admin/erasures", json={"subject": customer}).json()["data"]

    payload, text = read(api, api.token(Scope.EVENTS_READ, Scope.PII_READ), customer)

    gone = {"$erased": True, "subject": erased["erasure"]["subject"]}
    assert payload == {"customerId": customer, "email": gone, "person": gone, "rooms": 3}
    assert [secret for secret in SECRETS if secret in text] == []


@pytest.mark.parametrize("style", ["penstock.v1.json", "cloudevents.json"])
def test_what_is_sent_as_it_happens_follows_the_scope_too(api: Server, style: str) -> None:
    open_, shut = api.token(Scope.EVENTS_READ, Scope.PII_READ), api.token(Scope.EVENTS_READ)
    name = style.partition(".")[0]

    clear = over(api, open_, f"live-clear-{name}", style, live=True)
    masked = over(api, shut, f"live-masked-{name}", style, live=True)

    assert [secret for secret in SECRETS if secret not in json.dumps(clear)] == []
    assert [secret for secret in SECRETS if secret in json.dumps(masked)] == []
    assert "$masked" in json.dumps(masked)


def test_two_readers_of_one_live_event_each_see_what_they_may(api: Server) -> None:
    customer, seen = "live-both", {}
    tokens = {
        "clear": api.token(Scope.EVENTS_READ, Scope.PII_READ),
        "masked": api.token(Scope.EVENTS_READ),
    }
    address = f"ws://127.0.0.1:{api.port}/ws?tag.cust={customer}"
    headers = {name: {"Authorization": f"Bearer {token}"} for name, token in tokens.items()}
    with (
        connect(address, additional_headers=headers["clear"]) as clear,
        connect(address, additional_headers=headers["masked"]) as masked,
    ):
        sockets = {"clear": clear, "masked": masked}
        for socket in sockets.values():
            assert "connection.ack" in str(socket.recv(timeout=10))
        tell(api, customer, rooms=3, **ALICE)
        for name, socket in sockets.items():
            seen[name] = json.loads(socket.recv(timeout=10))["data"]["event"]["payload"]

    assert seen["clear"]["email"] == "alice@example.org"
    assert set(seen["masked"]["email"]) == {"$masked", "subject"}


def test_the_same_value_written_again_is_no_change_to_who_may_read_it(api: Server) -> None:
    customer = "again"
    first = tell(api, customer, rooms=3, **ALICE)
    tell(api, customer, rooms=4, **ALICE)
    asked = {"tags": f"cust:{customer}", "from": first}

    clear, _ = got(api, api.token(Scope.EVENTS_READ, Scope.PII_READ), "/v1/state/diff", **asked)
    masked, _ = got(api, api.token(Scope.EVENTS_READ), "/v1/state/diff", **asked)

    assert [change["pointer"] for change in clear["changes"]] == ["/rooms"]
    assert [change["pointer"] for change in masked["changes"]] == ["/email", "/person", "/rooms"]
    assert masked["changes"][0]["before"] == masked["changes"][0]["after"]


def test_a_snapshot_holds_nothing_in_the_clear_and_is_opened_for_who_may_read_it(
    api: Server,
) -> None:
    customer = "snapped"
    moves = [
        {
            "type": TYPE,
            "source": "shop.web",
            "payload": {"customerId": customer, "email": f"a{n}@example.org", "rooms": n},
        }
        for n in range(1_000)
    ]
    assert api.admin.post("/v1/append", json={"events": moves}).status_code == 200
    open_, shut = api.token(Scope.EVENTS_READ, Scope.PII_READ), api.token(Scope.EVENTS_READ)

    before, _ = of_the_state(api, open_, customer)
    with api.house.owner.connection() as connection:
        kept = connection.execute("SELECT state::text FROM state_snapshots").fetchall()
    clear, _ = of_the_state(api, open_, customer)
    masked, _ = of_the_state(api, shut, customer)

    assert kept != [], "a thousand events leave a snapshot"
    assert "example.org" not in str(kept)
    assert before == clear == {"customerId": customer, "email": "a999@example.org", "rooms": 999}
    assert set(masked["email"]) == {"$masked", "subject"}
