"""Whatever fails behind it, the API fails closed, keeps publishing, and never shows its insides."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.api.support import ADMIN, Server, event, opened, running, settings_for, status_line

from penstock.access.token import Scope
from penstock.base.errors import QueueUnavailable
from penstock.transport.port import Message

SECRET = "postgres-password-in-an-error"


@pytest.fixture
def api(database: str, tmp_path: Path) -> Iterator[Server]:
    """A server on a spool, whose PostgreSQL a test may take away."""
    settings = settings_for(database, tmp_path, events_mode="spool")
    with opened(settings) as house, running(house, database) as found:
        yield found


def away(api: Server) -> None:
    """Take PostgreSQL away."""
    for pool in (api.house.owner, api.house.ingest, api.house.readers):
        pool.close()


def publish(client: httpx.Client, **fields: Any) -> httpx.Response:
    return client.post("/v1/events", json=event(**fields))


def test_publishing_goes_on_while_postgresql_is_away(api: Server) -> None:
    assert publish(api.admin).status_code == 202
    away(api)

    assert [publish(api.admin).status_code for _ in range(5)] == [202] * 5
    assert publish(api.admin, id="chosen-by-the-publisher").status_code == 202


def test_a_token_nobody_knows_is_503_and_never_let_in_while_postgresql_is_away(api: Server) -> None:
    secret = api.token(Scope.ADMIN)
    away(api)

    with api.client(secret) as client:
        for path in ("/admin/events", "/admin/tokens", "/openapi.json", "/metrics"):
            answered = client.get(path)
            assert (answered.status_code, answered.json()["code"]) == (503, "store_unavailable")
            assert "retry-after" in answered.headers
        assert publish(client).status_code == 503


@pytest.mark.parametrize(
    "path",
    [
        "/admin/events", "/admin/events/x", "/admin/events/facets", "/admin/events/histogram",
        "/admin/dead-letters", "/admin/dead-letters/groups", "/admin/dead-letters/x",
        "/admin/ledger", "/admin/event-health", "/admin/queue-health", "/admin/tokens",
    ],
)  # fmt: skip
def test_reading_is_503_with_retry_after_while_postgresql_is_away(api: Server, path: str) -> None:
    assert api.admin.get("/admin/events").status_code == 200
    away(api)

    answered = api.admin.get(path)

    assert (answered.status_code, answered.json()["code"]) == (503, "store_unavailable")
    assert int(answered.headers["retry-after"]) > 0


def test_metrics_and_liveness_answer_while_postgresql_is_away_and_readiness_says_no(
    api: Server,
) -> None:
    api.admin.get("/admin/events")
    away(api)

    assert api.stranger.get("/healthz").status_code == 200
    assert "penstock_http_requests_total" in api.admin.get("/metrics").text
    ready = api.stranger.get("/readyz")
    assert ready.status_code == 503
    assert ready.json()["parts"]["postgres"] == "no answer"


def test_a_spool_without_an_ingress_is_not_ready(api: Server) -> None:
    answered = api.stranger.get("/readyz")

    assert answered.status_code == 503
    assert answered.json()["ready"] is False
    assert answered.json()["parts"]["ingress"] == "not started"


class Broken:
    """A transport that refuses."""

    def __init__(self, *, disk_full: bool) -> None:
        self._disk_full = disk_full

    def send(self, _messages: Sequence[Message]) -> Future[None]:
        failed: Future[None] = Future()
        error = QueueUnavailable("no room", disk_full=self._disk_full, retry_after_s=7)
        failed.set_exception(error)
        return failed

    def close(self) -> None: ...


@pytest.mark.parametrize(("disk_full", "status"), [(True, 507), (False, 503)])
def test_a_queue_that_cannot_keep_events_says_try_again_and_when(
    api: Server, monkeypatch: pytest.MonkeyPatch, disk_full: bool, status: int
) -> None:
    monkeypatch.setattr(api.house.door, "_transport", Broken(disk_full=disk_full))

    for body in (event(), [event(), event()]):
        answered = api.admin.post("/v1/events", json=body)

        assert (answered.status_code, answered.json()["code"]) == (status, "queue_unavailable")
        assert answered.headers["retry-after"] == "7"
        assert "deadLetterId" not in answered.json()


def test_a_token_whose_event_cannot_be_kept_is_not_left_behind(
    api: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.house.door, "_transport", Broken(disk_full=False))

    answered = api.admin.post("/admin/tokens", json={"name": "x", "scopes": ["events:read"]})

    assert answered.status_code == 503
    left = [info for info in api.house.tokens.list() if info.name == "x"]
    assert all(info.revoked_at is not None for info in left)


def test_a_fault_of_ours_is_a_500_that_shows_nothing(
    api: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any, **_kwargs: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(type(api.house.reader), "page", fail)

    answered = api.admin.get("/admin/events")

    assert answered.status_code == 500
    assert answered.headers["content-type"] == "application/problem+json"
    problem = answered.json()
    assert problem["code"] == "internal"
    assert SECRET not in answered.text
    assert "RuntimeError" not in answered.text
    assert problem["instance"].endswith(answered.headers["x-request-id"])


class Lines:
    """A log that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []

    def debug(self, said: str, **fields: Any) -> None:
        self.heard.append((said, fields))

    error = debug

    def isEnabledFor(self, _level: int) -> bool:  # noqa: N802  the library's name
        return True


def test_a_fault_of_ours_is_logged_with_its_place_and_without_its_words(
    api: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = Lines()
    monkeypatch.setattr("penstock.api.edge._log", lines)

    def fail(*_args: Any, **_kwargs: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(type(api.house.reader), "page", fail)
    api.admin.get("/admin/events")

    ((said, fields),) = lines.heard
    assert (said, fields["error"]) == ("request_failed", "RuntimeError")
    assert any("test_trouble.py" in frame for frame in fields["frames"])
    assert SECRET not in str(fields)


def test_a_published_event_is_logged_by_its_ids_and_never_with_its_payload(
    api: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = Lines()
    monkeypatch.setattr("penstock.api.handlers.publish._log", lines)
    monkeypatch.setattr("penstock.api.handlers.publish._quiet_log", lines)
    sent = event(id="logged-1", correlationId="req-77")
    sent["payload"]["note"] = SECRET

    assert api.admin.post("/v1/events", json=sent).status_code == 202

    ((said, fields),) = lines.heard
    assert said == "event_published"
    assert (fields["event_id"], fields["correlation_id"]) == ("logged-1", "req-77")
    assert SECRET not in str(fields)


def test_a_spooled_event_is_on_disk_when_202_is_heard(api: Server) -> None:
    answered = publish(api.admin, id="on-disk")

    assert answered.status_code == 202
    spool = api.house.settings.spool_dir
    assert any(b"on-disk" in path.read_bytes() for path in spool.iterdir() if path.is_file())


def test_with_authentication_off_everybody_is_the_admin_of_the_default_tenant(
    database: str, tmp_path: Path
) -> None:
    settings = settings_for(database, tmp_path, auth="off")
    with opened(settings) as house, running(house, database) as api:
        assert publish(api.stranger, id="anybody").status_code == 202
        assert api.stranger.get("/admin/events/anybody").status_code == 200
        ticket = api.stranger.post("/v1/ws-tickets")
        assert set(ticket.json()["data"]) == {"ticket", "expiresAt"}
        evil = {"Origin": "https://evil.example"}
        assert api.stranger.post("/v1/events", json=event(), headers=evil).status_code == 403


def test_two_hundred_publishers_at_once_are_all_heard(api: Server) -> None:
    request = b"".join(
        b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %b\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n%b\r\n%b"
        % (api.port, ADMIN.encode(), len(body), b"Connection: close\r\n" * last, body)
        for last, body in [
            (n == 199, json.dumps(event(id=f"many-{n}")).encode()) for n in range(200)
        ]
    )

    heard = api.raw(request)

    assert status_line(heard) == 202
    assert heard.count(b" 202 ") == 200
