"""Hold `handling` to its promise: what is published inside names its cause."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime

import pytest

from penstock.envelope.envelope import Envelope, Severity, Stored
from penstock.publish.cause import Cause, cause_of, current_cause, handling
from penstock.publish.port import Outcome

ENVELOPE = Envelope(
    id="evt-1",
    type="a.b",
    source="s",
    occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
    payload={},
    correlation_id="req-1",
)
STORED = Stored(
    position=1,
    envelope=ENVELOPE,
    received_at=datetime(2026, 1, 1, tzinfo=UTC),
    severity=Severity.INFO,
    severity_rule="default",
    schema_hash=None,
    content_hash=b"",
)
WIRE = {"id": "evt-1", "type": "a.b", "correlationId": "req-1"}


@pytest.mark.parametrize(
    "event", [ENVELOPE, STORED, WIRE, Outcome("evt-1", "accepted", "", {"correlationId": "req-1"})]
)
def test_every_shape_of_an_event_can_be_handled(event: Envelope) -> None:
    with handling(event):
        assert current_cause() == Cause("evt-1", "req-1")

    assert current_cause() is None


def test_a_chain_without_correlation_goes_by_the_id_of_its_first_event() -> None:
    assert cause_of({"id": "evt-1"}) == Cause("evt-1", "evt-1")
    assert cause_of({"id": "evt-1", "correlationId": None}) == Cause("evt-1", "evt-1")


def test_an_event_without_an_id_causes_nothing() -> None:
    with pytest.raises(TypeError, match="expected an event with an id"):
        cause_of({"type": "a.b"})


def test_the_inner_event_is_the_cause_until_it_is_done() -> None:
    with handling({"id": "outer"}):
        with handling({"id": "inner"}):
            assert current_cause() == Cause("inner", "inner")
        assert current_cause() == Cause("outer", "outer")


def test_the_cause_ends_when_handling_fails() -> None:
    with pytest.raises(RuntimeError), handling({"id": "outer"}):
        raise RuntimeError

    assert current_cause() is None


def test_another_thread_has_no_part_in_it() -> None:
    seen: list[Cause | None] = []

    with handling({"id": "here"}):
        thread = threading.Thread(target=lambda: seen.append(current_cause()))
        thread.start()
        thread.join()

    assert seen == [None]


def test_tasks_side_by_side_keep_their_own() -> None:
    async def react(name: str, turn: asyncio.Barrier) -> Cause | None:
        with handling({"id": name}):
            await turn.wait()  # every task is inside now
            return current_cause()

    async def both() -> list[Cause | None]:
        turn = asyncio.Barrier(2)
        return list(await asyncio.gather(react("a", turn), react("b", turn)))

    assert asyncio.run(both()) == [Cause("a", "a"), Cause("b", "b")]
