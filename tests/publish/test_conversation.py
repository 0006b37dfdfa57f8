"""Hold a conversation with a server to losing no result that was heard."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest

from penstock.base.errors import AccessDenied, EventRefused, QueueUnavailable
from penstock.envelope.envelope import JsonObject
from penstock.publish.answer import Answer
from penstock.publish.conversation import Conversation
from penstock.publish.port import Outcome

AT = datetime(2026, 1, 31, tzinfo=UTC)
AWAY = QueueUnavailable("away", retry_after_s=0)


def events(count: int) -> list[JsonObject]:
    return [{"id": f"evt-{n}"} for n in range(count)]


def accepted(body: bytes) -> Answer:
    said = orjson.loads(body)
    if isinstance(said, dict):
        data: object = {"status": "accepted", "event": said}
    else:
        data = {
            "results": [
                {"index": n, "id": each["id"], "status": "accepted"} for n, each in enumerate(said)
            ]
        }
    return Answer(202, orjson.dumps({"data": data}), AT)


def ids(talk: Conversation) -> list[str]:
    return [result.id for result in talk.results if isinstance(result, Outcome)]


def test_batches_are_said_one_after_the_other() -> None:
    talk = Conversation(events(2500))

    said = 0
    while (body := talk.body) is not None:
        talk.hear(accepted(body))
        said += 1

    assert said == 3
    assert ids(talk) == [f"evt-{n}" for n in range(2500)]


def test_a_server_that_is_away_from_the_start_is_unavailable() -> None:
    talk = Conversation(events(3))

    with pytest.raises(QueueUnavailable):
        talk.hear(AWAY)


@pytest.mark.parametrize("trouble", [AWAY, Answer(503, b"", AT), Answer(401, b"", AT)])
def test_what_was_heard_before_the_trouble_is_kept(trouble: Answer | QueueUnavailable) -> None:
    talk = Conversation(events(1500))

    talk.hear(accepted(talk.body or b""))
    talk.hear(trouble)

    assert talk.body is None
    assert len(talk.results) == 1000


def test_trouble_with_the_token_is_raised_at_once() -> None:
    with pytest.raises(AccessDenied):
        Conversation(events(1)).hear(Answer(401, b"", AT))


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_a_server_with_smaller_limits_gets_smaller_batches(limit: int) -> None:
    talk = Conversation(events(20))

    while (body := talk.body) is not None:
        said = orjson.loads(body)
        fits = isinstance(said, dict) or len(said) <= limit
        talk.hear(accepted(body) if fits else Answer(413, b'{"code": "too_large"}', AT))

    assert ids(talk) == [f"evt-{n}" for n in range(20)]


def test_one_event_that_is_too_large_by_itself_is_refused_and_no_other() -> None:
    talk = Conversation(events(5))

    while (body := talk.body) is not None:
        too_large = b"evt-3" in body
        talk.hear(Answer(413, b'{"code": "too_large"}', AT) if too_large else accepted(body))

    assert [
        result.reason if isinstance(result, EventRefused) else result.id for result in talk.results
    ] == ["evt-0", "evt-1", "evt-2", "too_large", "evt-4"]
