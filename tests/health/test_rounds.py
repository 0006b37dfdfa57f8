"""A round tells what is due, once however many workers there are, and tries again what failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs
from tests.health.scene import Scene, quiet_scene
from tests.workflows.launch.support import Receiver, outbound, receiver

from penstock.base.errors import StoreUnavailable
from penstock.base.settings import Settings
from penstock.health.rounds.on_postgres import alert_round
from penstock.workflows.launch.signature import verify

LOOPBACK = "127.0.0.0/8"


@pytest.fixture
def scene(database: str) -> Iterator[Scene]:
    with quiet_scene(database) as found:
        yield found


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


def settings(hook: Receiver, **said: Any) -> Settings:
    return Settings(alert_webhook_url=f"{hook.url}/alerts", **said)


def test_a_streak_is_posted_with_the_token_once_a_window(scene: Scene, hook: Receiver) -> None:
    scene.run("bad-", "failed", 3)
    said = settings(hook, alert_webhook_token=SecretStr("let-me-in"))

    told = [alert_round(scene.pool, said, outbound(LOOPBACK)) for _ in range(3)]

    assert [len(each) for each in told] == [1, 0, 0]
    (heard,) = hook.heard
    assert (heard.method, heard.path) == ("POST", "/alerts")
    assert heard.headers["authorization"] == "Bearer let-me-in"
    assert heard.headers["webhook-id"] == told[0][0].message_id
    body = json.loads(heard.body)
    assert body["event"] == "workflow.failure.streak"
    assert (body["data"]["workflowSlug"], body["data"]["failures"]) == ("sync", 3)

    scene.do("UPDATE alerts_sent SET sent_at = sent_at - interval '15 minutes'")
    assert len(alert_round(scene.pool, said, outbound(LOOPBACK))) == 1


def test_a_signing_secret_signs_and_is_not_sent(scene: Scene, hook: Receiver) -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    scene.run("bad-", "failed", 3)

    alert_round(
        scene.pool, settings(hook, alert_webhook_token=SecretStr(secret)), outbound(LOOPBACK)
    )

    (heard,) = hook.heard
    assert "authorization" not in heard.headers
    assert verify(heard.headers, heard.body, [secret], now=datetime.now(UTC))


def test_a_retry_that_stays_late_is_told_by_its_kind(scene: Scene, hook: Receiver) -> None:
    scene.run("r-", "running", 1)
    scene.retry("r-1", "load", due_s=-60)

    alert_round(scene.pool, settings(hook), outbound(LOOPBACK))

    (heard,) = hook.heard
    body = json.loads(heard.body)
    assert body["event"] == "retry.backlog.threshold"
    assert (body["data"]["category"], body["data"]["overdue"]) == ("workflowSteps", 1)


@pytest.mark.parametrize("status", [302, 404, 500])
def test_what_the_receiver_does_not_take_is_tried_again(
    scene: Scene, hook: Receiver, status: int
) -> None:
    scene.run("bad-", "failed", 3)
    hook.says(status)
    with capture_logs() as lines:
        assert alert_round(scene.pool, settings(hook), outbound(LOOPBACK)) == []

    assert [line["event"] for line in lines] == ["alert_unsent"]
    hook.says(204)
    assert len(alert_round(scene.pool, settings(hook), outbound(LOOPBACK))) == 1


def test_a_receiver_on_a_private_address_must_be_listed(scene: Scene, hook: Receiver) -> None:
    scene.run("bad-", "failed", 3)

    with capture_logs() as lines:
        assert alert_round(scene.pool, settings(hook), outbound()) == []

    assert hook.connections == 0
    assert lines[0]["event"] == "alert_unsent"


def test_without_an_address_alerts_are_logged_once_a_window(scene: Scene) -> None:
    scene.run("bad-", "failed", 4)

    with capture_logs() as lines:
        for _ in range(3):
            alert_round(scene.pool, Settings(), None)

    (line,) = lines
    assert (line["alert"], line["about"]) == ("workflow.failure.streak", "default/sync")
    assert line["failures"] == 4


def test_while_one_worker_is_on_its_round_the_others_pass_by(scene: Scene, hook: Receiver) -> None:
    scene.run("bad-", "failed", 3)
    with psycopg.connect(scene.dsn, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", (0x616C7274,))
        assert alert_round(scene.pool, settings(hook), outbound(LOOPBACK)) == []

    assert len(alert_round(scene.pool, settings(hook), outbound(LOOPBACK))) == 1
    assert len(hook.heard) == 1


def test_a_round_without_the_store_is_an_error_of_ours(scene: Scene) -> None:
    scene.pool.close()

    with pytest.raises(StoreUnavailable):
        alert_round(scene.pool, Settings(), None)
