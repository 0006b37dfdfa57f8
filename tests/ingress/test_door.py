"""The door answers what the ingress will decide, and only after the bytes are durable."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.ingress.messages import event

from penstock.base.clock import FixedClock
from penstock.base.errors import QueueUnavailable, StoreUnavailable
from penstock.base.ids import uuid7
from penstock.catalog.vocabularies import ALL
from penstock.envelope.codec import decode_array
from penstock.ingress.door import Door, DoorOutcome, Item
from penstock.ingress.verdict import Reason, Rejected, Via
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.transport.on_disk import Spool
from penstock.transport.port import Message
from penstock.transport.segment import Corrupt, parse

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


class Building:
    """A door with a real spool, and a store whose answers the test sets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spool = Spool(folder, segment_bytes=1_000_000, segment_age_ms=5, bytes_max=10**9)
        self.book = RegistryBook(InMemoryRegistryStore(), mode="strict")
        self.book.declare(ALL)
        self.clock = FixedClock(NOW)
        self.stored: dict[str, bytes] = {}
        self.kept: list[Rejected] = []
        self.asked: list[str] = []
        self.away = False
        self.door = self.open()

    def open(self) -> Door:
        return Door(
            transport=self.spool,
            registry=self.book.current,
            known=self.known,
            keep=self.keep,
            clock=self.clock,
        )

    def known(self, _tenant_id: str, ids: Sequence[str]) -> dict[str, bytes]:
        if self.away:
            raise StoreUnavailable("away")
        self.asked.extend(ids)
        return {i: self.stored[i] for i in ids if i in self.stored}

    def keep(self, rejected: Sequence[Rejected], _at: datetime) -> None:
        if self.away:
            raise StoreUnavailable("away")
        self.kept.extend(rejected)

    def publish(self, *values: object, key: str | None = None) -> list[DoorOutcome]:
        items = [Item(v if isinstance(v, bytes) else json.dumps(v).encode()) for v in values]
        return self.door.publish(items, tenant_id="default", via=Via.HTTP, key=key)

    def queued(self) -> list[Message]:
        self.spool.close()
        lines = [m for f in sorted(self.folder.glob("seg-*")) for m in parse(f.read_bytes())]
        assert not any(isinstance(line, Corrupt) for line in lines)
        return [line for line in lines if isinstance(line, Message)]


@pytest.fixture
def building(tmp_path: Path) -> Iterator[Building]:
    built = Building(tmp_path)
    yield built
    built.spool.close()


def test_an_accepted_event_is_on_disk_when_the_caller_hears_of_it(building: Building) -> None:
    (outcome,) = building.publish(event(1))

    assert outcome.status == "accepted"
    (message,) = building.queued()
    assert json.loads(message.json)["id"] == "m-1"
    assert (message.via, message.tenant_id) == ("http", "default")


def test_an_event_without_an_id_gets_one_before_it_is_queued(building: Building) -> None:
    (outcome,) = building.publish({k: v for k, v in event(1).items() if k != "id"})

    (message,) = building.queued()
    assert json.loads(message.json)["id"] == outcome.id


def test_the_caller_hears_the_time_that_will_be_stored(building: Building) -> None:
    (outcome,) = building.publish(event(1))

    assert outcome.event is not None
    assert outcome.event["occurredAt"] == "2026-03-01T12:00:00.123Z"
    (message,) = building.queued()
    assert message.accepted_ms % 1000 == 123
    assert "occurredAt" not in json.loads(message.json), "a default is not a claim"


def test_a_refused_event_is_kept_verbatim_and_nothing_is_queued(building: Building) -> None:
    raw = b'{ "type": "no.such.type", "source": "a.b" }'
    (outcome,) = building.publish(raw)

    assert outcome.status == "rejected"
    assert outcome.rejected is not None
    assert outcome.rejected.reason == Reason.TYPE_UNKNOWN
    assert [r.raw for r in building.kept] == [raw]
    assert building.queued() == []


def test_one_bad_item_of_a_batch_never_fails_another(building: Building) -> None:
    outcomes = building.publish(event(1), b"{", event(2), event(3, ttl=-1))

    assert [o.status for o in outcomes] == ["accepted", "rejected", "accepted", "rejected"]
    assert len(building.queued()) == 2


def test_the_same_event_again_is_a_duplicate_and_is_not_queued_again(building: Building) -> None:
    building.publish(event(1))
    building.clock.move(timedelta(seconds=5))
    (outcome,) = building.publish(event(1))

    assert outcome.status == "duplicate"
    assert len(building.queued()) == 1


def test_the_same_event_twice_in_one_batch_is_queued_once(building: Building) -> None:
    outcomes = building.publish(event(1), event(1), event(1, ttl=9))

    assert [o.status for o in outcomes] == ["accepted", "duplicate", "rejected"]
    assert len(building.queued()) == 1


def test_an_id_that_the_store_has_with_other_content_is_refused(building: Building) -> None:
    building.stored["m-1"] = b"another content"
    (outcome,) = building.publish(event(1))

    assert outcome.rejected is not None
    assert outcome.rejected.reason == Reason.ID_CONFLICT


def test_a_fresh_uuid7_needs_no_question_to_the_store(building: Building) -> None:
    building.publish(event(1, id=uuid7()))

    # FixedClock stands in March 2026, so an id of today is younger than all that was forgotten.
    assert building.asked == []


def test_the_same_idempotency_key_names_the_same_events(building: Building) -> None:
    body = {k: v for k, v in event(1).items() if k != "id"}
    (first,) = building.publish(body, key="k-1")
    (again,) = building.publish(body, key="k-1")
    (other,) = building.publish(body, key="k-2")

    assert (first.status, again.status, other.status) == ("accepted", "duplicate", "accepted")
    assert first.id == again.id != other.id


def test_the_same_idempotency_key_with_another_body_is_refused(building: Building) -> None:
    body = {k: v for k, v in event(1).items() if k != "id"}
    building.publish(body, key="k-1")
    (other,) = building.publish({**body, "ttl": 5}, key="k-1")

    assert other.rejected is not None
    assert other.rejected.reason == Reason.ID_CONFLICT


def test_publishing_goes_on_while_the_store_is_away(building: Building) -> None:
    building.away = True
    good, bad = building.publish(event(1), b'{"type": 1}')

    assert (good.status, bad.status) == ("accepted", "rejected")
    assert [m.json for m in building.queued()][1:] == [b'{"type": 1}'], "the ingress will keep it"


def test_an_event_is_not_acknowledged_when_the_queue_cannot_keep_it(building: Building) -> None:
    class Full:
        def send(self, _messages: Sequence[Message]) -> Future[None]:
            failed: Future[None] = Future()
            failed.set_exception(QueueUnavailable("full", disk_full=True))
            return failed

        def close(self) -> None:
            return None

    building.door._transport = Full()

    with pytest.raises(QueueUnavailable):
        building.publish(event(1))
    building.door._transport = building.spool
    (outcome,) = building.publish(event(1))
    assert outcome.status == "accepted", "what was not acknowledged is not a duplicate later"


def test_the_async_face_answers_the_same(building: Building) -> None:
    items = [Item(json.dumps(event(1)).encode()), Item(b"{")]

    async def publish() -> list[DoorOutcome]:
        return await building.door.publish_async(items, tenant_id="default", via=Via.HTTP)

    assert [o.status for o in asyncio.run(publish())] == ["accepted", "rejected"]


def test_a_body_that_names_another_tenant_is_refused(building: Building) -> None:
    (outcome,) = building.publish(event(1, tenantId="other"))

    assert outcome.rejected is not None
    assert outcome.rejected.reason == Reason.TENANT_MISMATCH


def test_an_event_that_grows_too_large_when_written_out_is_refused_before_it_is_accepted(
    building: Building,
) -> None:
    raw = json.dumps(event(1)).encode()
    raw = raw.replace(
        b'"source"', b'"metadata": {"x": [' + b",".join([b"1e15"] * 19_000) + b']}, "source"'
    )
    (outcome,) = building.publish(raw)

    assert len(raw) < 100_000
    assert outcome.rejected is not None
    assert outcome.rejected.reason == Reason.TOO_LARGE


def test_only_an_operator_may_publish_what_penstock_says_of_its_operators(
    building: Building,
) -> None:
    raw = json.dumps(event(1, type="penstock.token.created", payload={"tokenId": "t"})).encode()
    (outcome,) = building.door.publish(
        [Item(raw)], tenant_id="default", via=Via.HTTP, operator=False
    )

    assert outcome.rejected is not None
    assert outcome.rejected.reason == Reason.TYPE_RESERVED


def test_what_was_cut_from_a_compact_batch_is_queued_with_its_id_and_version(
    building: Building,
) -> None:
    sent = [event(1), {k: v for k, v in event(2).items() if k != "id"}, *map(event, range(3, 7))]
    plain = decode_array(json.dumps(sent, separators=(",", ":")).encode(), items_max=10)
    assert plain is not None
    items = [Item(raw, tree, is_compact=True) for raw, tree in zip(*plain, strict=True)]

    outcomes = building.door.publish(items, tenant_id="acme", via=Via.HTTP)

    queued = [json.loads(message.json) for message in building.queued()]
    assert [each["id"] for each in queued] == [outcome.id for outcome in outcomes]
    assert {(each["schemaVersion"], each["tenantId"]) for each in queued} == {(1, "acme")}
    assert [each["payload"] for each in queued] == [each["payload"] for each in sent]


def test_what_came_in_a_dialect_is_queued_in_our_words(building: Building) -> None:
    said = {"specversion": "1.0", "id": "c", "source": "a.b", "type": "metastore.record.updated"}
    events = [{**said, "id": f"c-{n}", "data": event(n)["payload"]} for n in range(5)]
    plain = decode_array(json.dumps(events, separators=(",", ":")).encode(), items_max=10)
    assert plain is not None
    items = [Item(raw, tree, is_compact=True) for raw, tree in zip(*plain, strict=True)]

    building.door.publish(items, tenant_id="default", via=Via.HTTP)

    queued = [json.loads(message.json) for message in building.queued()]
    assert [each["payload"] for each in queued] == [event(n)["payload"] for n in range(5)]
    assert not any("specversion" in each for each in queued)
