"""A service step calls the registered address and takes what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.workflows.launch.support import Book, Receiver, call, outbound, receiver, service

from penstock.envelope.envelope import JsonObject
from penstock.workflows.launch.errors import OutboundRefused
from penstock.workflows.launch.service import ServiceCalls, join_url
from penstock.workflows.port import Failed, StepCall, Succeeded

HERE = "127.0.0.1/32"


def secrets(tenant: str, name: str) -> Sequence[str]:
    return ("Bearer t-1",) if (tenant, name) == ("default", "t") else ()


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def calls(there: Receiver, *cidrs: str, **said: Any) -> ServiceCalls:
    book = Book(service("weather", f"{there.url}/api", **said))
    return ServiceCalls(outbound(*(cidrs or (HERE,))), book, secrets)


def step(request: JsonObject | None = None, slug: str = "weather", **said: Any) -> StepCall:
    return call(slug, {"request": request or {}, **said}, kind="service", correlation_id="c-1")


def test_the_request_reaches_the_service_and_its_answer_is_the_output(there: Receiver) -> None:
    there.says(200, b'{"rows": 3}')
    request: JsonObject = {
        "method": "PUT",
        "path": "/load it",
        "query": {"city": "Köln", "n": 2, "none": None},
        "headers": {"X-Mine": "1", "Authorization": {"secret": "t"}},
        "body": {"a": [1]},
    }

    result = calls(there, headers={"x-all": "yes"}).run(step(request))

    assert result == Succeeded({"status": 200, "body": {"rows": 3}})
    (heard,) = there.heard
    assert (heard.method, heard.path) == ("PUT", "/api/load%20it?city=K%C3%B6ln&n=2")
    assert heard.body == b'{"a":[1]}'
    expected = {
        "x-mine": "1",
        "x-all": "yes",
        "authorization": "Bearer t-1",
        "content-type": "application/json",
        "idempotency-key": "run-1-step-1",
        "x-correlation-id": "c-1",
    }
    assert expected.items() <= heard.headers.items()


@pytest.mark.parametrize(
    ("answer", "body"),
    [(b"plain text", "plain text"), (b"", None), (b'{"a":1,"a":2}', '{"a":1,"a":2}')],
)
def test_an_answer_need_not_be_json(there: Receiver, answer: bytes, body: object) -> None:
    there.says(200, answer)

    assert calls(there).run(step()) == Succeeded({"status": 200, "body": body})


def test_an_answer_that_is_not_captured_is_not_shown(there: Receiver) -> None:
    there.says(200, b"x" * 100_000)

    assert calls(there).run(step(captureResponse=False)) == Succeeded({"status": 200})


def test_an_answer_that_is_too_long_to_capture_fails(there: Receiver) -> None:
    there.says(200, b"x" * 100_000)

    result = calls(there).run(step())

    assert isinstance(result, Failed)
    assert (result.reason, result.retryable) == ("output_invalid", False)


@pytest.mark.parametrize(("status", "retryable"), [(404, False), (302, False), (503, True)])
def test_a_bad_answer_fails_without_its_body(there: Receiver, status: int, retryable: bool) -> None:
    there.says(status, b"inner")

    result = calls(there).run(step())

    assert isinstance(result, Failed)
    assert (result.reason, result.retryable) == ("request_failed", retryable)
    assert "inner" not in result.detail


def test_an_unknown_service_is_named(there: Receiver) -> None:
    result = calls(there).run(step(slug="nobody"))

    assert isinstance(result, Failed)
    assert (result.reason, result.retryable) == ("service_unknown", False)


@pytest.mark.parametrize(
    ("status", "allow_degraded", "goes"),
    [
        ("healthy", False, True),
        ("degraded", True, True),
        ("degraded", False, False),
        ("unreachable", True, False),
        ("unknown", True, False),
    ],
)
def test_a_step_may_ask_for_a_healthy_service(
    there: Receiver, status: str, allow_degraded: bool, goes: bool
) -> None:
    result = calls(there, status=status).run(
        step(requireHealthy=True, allowDegraded=allow_degraded)
    )

    assert isinstance(result, Succeeded) is goes
    assert bool(there.heard) is goes
    assert goes or (isinstance(result, Failed) and result.reason == "service_unhealthy")


def test_a_registered_service_is_guarded_like_every_address(there: Receiver) -> None:
    result = calls(there, "10.0.0.0/8").run(step())

    assert isinstance(result, Failed)
    assert result.reason == "address_refused"
    assert there.connections == 0


def test_a_missing_secret_sends_nothing(there: Receiver) -> None:
    result = calls(there).run(step({"headers": {"authorization": {"secret": "none"}}}))

    assert isinstance(result, Failed)
    assert result.reason == "input_invalid"
    assert there.heard == []


@pytest.mark.parametrize(
    "path", ["/../admin", "/a/../../b", "/%2e%2e/admin", "/%252e%252e/admin", "/.", "/a\\..\\b"]
)
def test_a_path_does_not_climb_out_of_its_service(path: str) -> None:
    with pytest.raises(OutboundRefused):
        join_url("https://example.com/api", path)


def test_a_path_cannot_name_another_host() -> None:
    assert (
        join_url("https://example.com", "//evil.example/x") == "https://example.com/evil.example/x"
    )
    assert join_url("https://example.com", "/@evil.example") == "https://example.com/@evil.example"
    assert join_url("https://example.com/a/", "b?c=d#e") == "https://example.com/a/b?c=d%23e"
