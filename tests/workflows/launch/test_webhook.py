"""A webhook is signed, delivered once per id, and tells nothing but the status of its answer."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.workflows.launch.support import Names, Receiver, call, outbound, receiver

from penstock.base.clock import FixedClock
from penstock.envelope.envelope import JsonValue
from penstock.workflows.launch.circuit import Circuits
from penstock.workflows.launch.signature import verify
from penstock.workflows.launch.webhook import Callback, Webhooks, deliver
from penstock.workflows.port import Failed, StepCall, Succeeded, Waiting

HERE = "127.0.0.1/32"
NOW = datetime(2026, 3, 1, 10, 30, tzinfo=UTC)
OLD, NEW = (f"whsec_{base64.b64encode(letter * 32).decode()}" for letter in (b"o", b"n"))
SECRETS = {"hook": (NEW, OLD), "odd": ("whsec_no",)}


def secrets(_tenant: str, name: str) -> Sequence[str]:
    return SECRETS.get(name, ())


def webhook(url: str, *, body: JsonValue = None, **said: Any) -> StepCall:
    step: dict[str, JsonValue] = {"url": url, "body": body if body is not None else {"rows": 7}}
    fields = {n: said.pop(n) for n in ("secretName", "waitForCallback") if n in said}
    return call("webhook", {**step, **fields}, kind="webhook", **said)


def hooks(*cidrs: str, **said: Any) -> Webhooks:
    names = said.pop("names", None)
    return Webhooks(
        outbound(*cidrs, names=names), secrets, clock=said.pop("clock", FixedClock(NOW)), **said
    )


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def test_a_webhook_is_delivered_and_its_signature_verifies(there: Receiver) -> None:
    result = hooks(HERE).run(webhook(f"{there.url}/in", secretName="hook"))

    assert result == Succeeded({"status": 200, "messageId": "run-1-step-1"})
    (heard,) = there.heard
    assert (heard.method, heard.path, heard.body) == ("POST", "/in", b'{"rows":7}')
    for secret in (OLD, NEW):
        assert verify(heard.headers, heard.body, [secret], now=NOW) == "run-1-step-1"


def test_a_retry_has_the_same_id_and_its_own_time(there: Receiver) -> None:
    clock = FixedClock(NOW)
    step = webhook(there.url, secretName="hook")
    hooks(HERE, clock=clock).run(step)
    clock.move(timedelta(minutes=10))
    hooks(HERE, clock=clock).run(step)

    first, second = (heard.headers for heard in there.heard)
    assert first["webhook-id"] == second["webhook-id"]
    assert int(second["webhook-timestamp"]) - int(first["webhook-timestamp"]) == 600


@pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 404, 410])
def test_an_answer_that_will_not_change_fails_for_good(there: Receiver, status: int) -> None:
    there.says(status, b"inner page", location="http://127.0.0.1/")

    result = hooks(HERE).run(webhook(there.url))

    assert isinstance(result, Failed)
    assert (result.reason, result.retryable) == ("request_failed", False)
    assert str(status) in result.detail


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_an_answer_that_may_change_is_tried_again(there: Receiver, status: int) -> None:
    there.says(status)

    result = hooks(HERE).run(webhook(there.url))

    assert isinstance(result, Failed)
    assert (result.reason, result.retryable) == ("request_failed", True)


@pytest.mark.parametrize("status", [429, 503])
def test_a_receiver_that_says_when_to_come_again_is_asked_then(
    there: Receiver, status: int
) -> None:
    there.says(status, retry_after="7")

    waiting = hooks(HERE).run(webhook(there.url))
    assert waiting == Waiting(7.0, {"rests": 1})
    there.says(200)
    done = hooks(HERE).run(webhook(there.url, token={"rests": 1}))

    assert isinstance(done, Succeeded)


@pytest.mark.parametrize(
    ("after", "token"), [("7", {"rests": 10}), ("3600", None), ("soon", None), ("-1", None)]
)
def test_but_not_for_ever_and_not_beyond_the_steps_time(
    there: Receiver, after: str, token: JsonValue
) -> None:
    there.says(429, retry_after=after)

    result = hooks(HERE).run(webhook(there.url, token=token))

    assert isinstance(result, Failed)
    assert result.retryable


def test_a_receiver_that_is_spared_costs_no_attempt(there: Receiver) -> None:
    http = outbound(HERE, circuits=Circuits(failures_max=1, rest_s=5))
    there.says(500)
    hook = Webhooks(http, secrets)
    assert isinstance(hook.run(webhook(there.url)), Failed)

    waiting = hook.run(webhook(there.url))

    assert isinstance(waiting, Waiting)
    assert 4 < waiting.poll_after_s <= 5
    assert len(there.heard) == 1


def test_no_answer_is_tried_again(there: Receiver) -> None:
    there.answer = lambda _heard: None

    result = hooks(HERE).run(webhook(there.url))

    assert isinstance(result, Failed)
    assert (result.reason, result.retryable) == ("request_failed", True)


def test_a_receiver_that_hangs_is_left_after_the_steps_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"

        result = hooks(HERE).run(webhook(url, timeout_s=0.2))

    assert isinstance(result, Failed)
    assert result.retryable


@pytest.mark.parametrize("status", [200, 302, 404, 500])
def test_what_the_receiver_answers_is_never_shown(there: Receiver, status: int) -> None:
    there.says(status, b"AKIA-INNER-SECRET", x_inner="AKIA-INNER-SECRET")

    assert "AKIA" not in repr(hooks(HERE).run(webhook(there.url)))


def test_an_alert_is_delivered_the_same_way_and_hears_no_body_either(there: Receiver) -> None:
    there.says(200, b"AKIA-INNER-SECRET")

    reply = deliver(
        outbound(HERE), there.url, {"event": "retry.backlog.threshold"},
        message="alert-1", secrets=[NEW], call_id="alert-1", clock=FixedClock(NOW),
    )  # fmt: skip

    assert (reply.status, reply.body) == (200, b"")
    assert verify(there.heard[0].headers, there.heard[0].body, [NEW], now=NOW) == "alert-1"


def test_a_webhook_to_a_private_address_by_name_fails_with_its_reason(there: Receiver) -> None:
    step = webhook(f"http://receiver.example:{there.port}/")

    result = hooks(names=Names(["127.0.0.1"])).run(step)

    assert isinstance(result, Failed)
    assert (result.reason, result.retryable) == ("address_refused", False)
    assert there.connections == 0


def test_a_webhook_to_a_private_address_by_redirect_fails_with_its_reason() -> None:
    with receiver("127.0.0.2") as good, receiver() as inside:
        good.says(302, location=inside.url)

        result = hooks("127.0.0.2/32").run(webhook(good.url))

        assert isinstance(result, Failed)
        assert "redirects are not followed" in result.detail
        assert inside.connections == 0


def test_a_webhook_to_a_private_address_by_rebinding_fails_with_its_reason() -> None:
    with receiver("127.0.0.2") as good, receiver("127.0.0.1", good.port) as inside:
        hook = hooks("127.0.0.2/32", names=Names(["127.0.0.2"], ["127.0.0.1"]))
        step = webhook(f"http://receiver.example:{good.port}/")

        assert isinstance(hook.run(step), Succeeded)
        refused = hook.run(step)

        assert isinstance(refused, Failed)
        assert refused.reason == "address_refused"
        assert inside.connections == 0


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "http://", "None"])
def test_something_that_is_no_address_fails_for_good(url: str) -> None:
    result = hooks(HERE).run(webhook(url))

    assert isinstance(result, Failed)
    assert (result.reason, result.retryable) == ("address_refused", False)


@pytest.mark.parametrize("name", ["unknown", "odd"])
def test_a_secret_that_is_missing_or_malformed_sends_nothing(there: Receiver, name: str) -> None:
    result = hooks(HERE).run(webhook(there.url, secretName=name))

    assert isinstance(result, Failed)
    assert (result.reason, result.retryable) == ("input_invalid", False)
    assert "whsec_no" not in result.detail
    assert there.heard == []


def test_a_step_may_wait_for_the_receiver_to_call_back(there: Receiver) -> None:
    said: dict[str, Callback] = {}
    hook = hooks(HERE, callbacks=lambda _tenant, message: said.get(message))
    step = webhook(there.url, waitForCallback=True)

    waiting = hook.run(step)
    assert isinstance(waiting, Waiting)
    again = webhook(there.url, waitForCallback=True, token=waiting.token)
    assert isinstance(hook.run(again), Waiting)

    said["run-1-step-1"] = Callback(True, {"rows": 3})
    assert hook.run(again) == Succeeded({"rows": 3})
    said["run-1-step-1"] = Callback(False, detail="disk full")
    assert hook.run(again) == Failed("remote_failed", "disk full", retryable=False)
    assert len(there.heard) == 1


def test_a_callback_that_never_comes_is_out_of_time(there: Receiver) -> None:
    hook = hooks(HERE, callbacks=lambda _tenant, _message: None)
    started_at = NOW - timedelta(seconds=11)

    result = hook.run(
        webhook(there.url, waitForCallback=True, token={"messageId": "m"}, started_at=started_at)
    )

    assert isinstance(result, Failed)
    assert result.reason == "timed_out"


def test_a_worker_without_callbacks_does_not_wait_for_one(there: Receiver) -> None:
    result = hooks(HERE).run(webhook(there.url, waitForCallback=True))

    assert isinstance(result, Failed)
    assert result.reason == "input_invalid"
    assert there.heard == []
