"""Hold the reading of HTTP answers to the contract of POST /v1/events."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest

from penstock.base.errors import (
    AccessDenied,
    EventRefused,
    Fault,
    NotFound,
    QueueUnavailable,
)
from penstock.envelope.envelope import JsonObject
from penstock.publish.answer import Answer, read_answer, retry_after_s
from penstock.publish.port import Outcome

AT = datetime(2026, 1, 31, 10, 30, tzinfo=UTC)
ONE: list[JsonObject] = [{"id": "evt-0", "type": "a.b"}]
TWO: list[JsonObject] = [{"id": "evt-0", "type": "a.b"}, {"id": "evt-1", "type": "a.b"}]
PROBLEM = {
    "type": "about:blank",
    "title": "Event refused",
    "code": "payload_invalid",
    "detail": "expected integer, found string",
    "remedy": "Correct it.",
    "errors": [{"pointer": "/payload/n", "detail": "expected integer"}],
    "deadLetterId": "dl-1",
}


def answer(status: int, tree: object = None, retry_after: str | None = None) -> Answer:
    body = tree if isinstance(tree, bytes) else orjson.dumps(tree)
    return Answer(status, body, AT, retry_after)


@pytest.mark.parametrize("status", ["accepted", "duplicate"])
def test_one_event_answers_with_what_is_stored(status: str) -> None:
    stored = {"id": "evt-0", "type": "a.b", "tenantId": "default"}
    data = {"status": status, "acceptedAt": "2026-01-31T10:29:00.000Z", "event": stored}

    (result,) = read_answer(answer(202, {"data": data}), ONE)

    assert result == Outcome("evt-0", status, "2026-01-31T10:29:00.000Z", stored)  # type: ignore[arg-type]


def test_a_batch_answers_per_event_whatever_the_order_of_the_results() -> None:
    results = [
        {"index": 1, "id": "evt-1", "status": "rejected", "problem": PROBLEM},
        {"index": 0, "id": "evt-0", "status": "accepted"},
    ]

    first, second = read_answer(answer(207, {"data": {"results": results}}), TWO)

    assert first == Outcome("evt-0", "accepted", "2026-01-31T10:30:00.000Z", TWO[0])
    assert isinstance(second, EventRefused)
    assert second.reason == "payload_invalid"
    assert second.detail == "expected integer, found string"
    assert second.remedy == "Correct it."
    assert second.faults == (Fault("/payload/n", "expected integer"),)
    assert second.dead_letter_id == "dl-1"


def test_a_batch_that_says_when_it_was_accepted_is_believed() -> None:
    results = [{"index": n, "id": f"evt-{n}", "status": "duplicate"} for n in range(2)]
    data = {"acceptedAt": "2026-01-01T00:00:00.000Z", "results": results}

    found = read_answer(answer(202, {"data": data}), TWO)

    assert [r.accepted_at for r in found if isinstance(r, Outcome)] == [data["acceptedAt"]] * 2


@pytest.mark.parametrize("status", [400, 409, 413, 415, 422])
def test_a_problem_refuses_every_event_of_the_request(status: int) -> None:
    results = read_answer(answer(status, PROBLEM), TWO)

    assert [r.reason for r in results if isinstance(r, EventRefused)] == ["payload_invalid"] * 2


@pytest.mark.parametrize(("status", "known"), [(401, False), (403, True)])
def test_a_token_that_does_not_do_is_access_denied(status: int, known: bool) -> None:
    with pytest.raises(AccessDenied, match="no such token") as caught:
        read_answer(answer(status, {"code": "access_denied", "detail": "no such token"}), ONE)

    assert caught.value.known is known


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 507])
def test_a_server_that_cannot_store_now_is_unavailable(status: int) -> None:
    with pytest.raises(QueueUnavailable) as caught:
        read_answer(answer(status, {"detail": "not now"}, retry_after="17"), ONE)

    assert caught.value.detail == "not now"
    assert caught.value.retry_after_s == 17
    assert caught.value.disk_full is (status == 507)


def test_a_proxy_that_answers_in_html_is_unavailable_too() -> None:
    with pytest.raises(QueueUnavailable, match="expected 202 from the server, found 502"):
        read_answer(answer(502, b"<html>Bad gateway"), ONE)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, {"code": "not_found", "detail": "nothing here"}),
        (405, {"detail": "Method Not Allowed"}),
        (301, b""),
        (418, b"a teapot"),
        (200, b"<html>Welcome to the router"),
        (202, {"data": []}),
        (202, {"data": {"status": "queued"}}),
        (202, [1, 2]),
    ],
)
def test_whatever_is_no_penstock_is_called_so(status: int, body: object) -> None:
    with pytest.raises(NotFound, match="expected a Penstock server") as caught:
        read_answer(answer(status, body), ONE)

    assert "PENSTOCK_URL" in caught.value.remedy


@pytest.mark.parametrize(
    "results",
    [
        [],
        None,
        "all fine",
        [{"index": 0, "id": "evt-0", "status": "accepted"}],
        [{"index": 0, "status": "accepted"}, {"index": 0, "status": "accepted"}],
        [{"index": 0, "status": "accepted"}, {"index": 2, "status": "accepted"}],
        [{"status": "accepted"}, {"status": "accepted"}],
    ],
)
def test_an_event_that_the_answer_leaves_out_never_passes_for_stored(results: object) -> None:
    with pytest.raises(NotFound):
        read_answer(answer(202, {"data": {"results": results}}), TWO)


def test_an_event_of_the_deepest_kind_can_be_answered() -> None:
    payload: object = 1
    for _ in range(31):
        payload = [payload]
    stored = {"id": "evt-0", "payload": payload}

    (result,) = read_answer(answer(202, {"data": {"status": "accepted", "event": stored}}), ONE)

    assert isinstance(result, Outcome)
    assert result.event == stored


def test_a_refusal_without_words_still_is_one() -> None:
    results = [{"index": 0, "status": "rejected"}, {"index": 1, "status": "accepted"}]

    first, second = read_answer(answer(207, {"data": {"results": results}}), TWO)

    assert isinstance(first, EventRefused)
    assert first.reason == "event_refused"
    assert isinstance(second, Outcome)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0),
        ("", 0),
        ("0", 0),
        ("30", 30),
        (" 5 ", 5),
        ("-5", 0),
        ("1.5", 0),
        ("soon", 0),
        ("9" * 5000, 0),
        ("Sat, 31 Jan 2026 10:30:45 GMT", 45),
        ("Sat, 31 Jan 2026 10:29:00 GMT", 0),
        ("Sat, 31 Jan 2026 10:30:45 -0000", 45),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header: str | None, seconds: int) -> None:
    assert retry_after_s(header, AT) == seconds
