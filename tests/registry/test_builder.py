"""An event type builds events of its own and reads them back, and takes no other payload."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import pytest
from pydantic import Field

from penstock.base.errors import EventRefused, SchemaInvalid
from penstock.catalog.vocabularies import ALL
from penstock.envelope.check import read, write
from penstock.envelope.envelope import Envelope, Severity, Stored
from penstock.registry.declare import EventType, Payload, Vocabulary
from penstock.registry.proposal import Proposal, check

AT = datetime(2026, 3, 1, 10, 30, 0, 123456, tzinfo=UTC)


class Line(Payload):
    """One line of an order."""

    sku: str
    note: str | None = None


class Placed(Payload):
    """An order was placed."""

    order_id: str
    priority: Literal["low", "high"] = "low"
    placed_at: datetime | None = None
    coupon: str | None = None
    lines: list[Line] = Field(default_factory=list)


class Cancelled(Payload):
    """An order was called off."""

    order_id: str


PLACED = EventType("order.placed", Placed, sources=("shop.api",), version=3)
CANCELLED = EventType("order.cancelled", Cancelled, sources=("shop.api", "shop.cli"))
SHOP = Vocabulary("shop", (PLACED, CANCELLED))


def stored(envelope: Envelope) -> Stored:
    return Stored(1, envelope, AT, Severity.INFO, "default", None, b"")


def test_the_event_is_in_wire_form_with_its_version_and_only_source() -> None:
    assert PLACED.event(Placed(order_id="o-1")) == {
        "type": "order.placed",
        "source": "shop.api",
        "schemaVersion": 3,
        "payload": {"orderId": "o-1", "priority": "low", "lines": []},
    }


def test_a_payload_builds_the_event_of_its_type() -> None:
    payload = Placed(order_id="o-1")

    assert payload.event() == PLACED.event(payload)
    assert Placed.event(payload, id="a", tags={"team": "x"}) == PLACED.event(
        payload, id="a", tags={"team": "x"}
    )


def test_a_payload_builds_events_of_the_newest_version_of_its_type() -> None:
    class Shipped(Payload):
        """An order left."""

    for version in (1, 3, 2):
        EventType("order.shipped", Shipped, version=version)

    assert Shipped().event()["schemaVersion"] == 3


@pytest.mark.parametrize(
    ("names", "found"), [((), "none"), (("b.done", "a.done"), "a.done and b.done")]
)
def test_a_payload_of_no_type_or_of_several_says_so(names: tuple[str, ...], found: str) -> None:
    class Done(Payload):
        """Something is over."""

    for name in names:
        EventType(name, Done)

    with pytest.raises(TypeError, match=f"payload Done, found {found}: .*EventType"):
        Done().event()


def test_every_type_of_the_vocabularies_is_built_by_its_payload() -> None:
    for event_type in (each for vocabulary in ALL for each in vocabulary.events):
        payload = event_type.payload.model_validate(event_type.example or {})

        assert payload.event() == event_type.event(payload)


def test_a_type_with_several_sources_leaves_the_choice_to_the_publisher() -> None:
    payload = Cancelled(order_id="o-1")

    assert "source" not in CANCELLED.event(payload)
    assert CANCELLED.event(payload, source="shop.cli")["source"] == "shop.cli"


def test_everything_that_can_be_said_beside_the_payload_has_its_wire_name() -> None:
    event = PLACED.event(
        Placed(order_id="o-1"),
        id="e-1",
        source="shop.cli",
        tags={"orderId": "o-1"},
        metadata={"region": "eu"},
        occurred_at=AT.astimezone(timezone(timedelta(hours=2))),
        correlation_id="c",
        causation_id="d",
        traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ttl_ms=5000,
        tenant_id="acme",
    )

    envelope = read(event, accepted_at=AT, fallback_id="", tenant_id=None)

    assert isinstance(envelope, Envelope)
    assert write(envelope) == event
    assert event["occurredAt"] == "2026-03-01T10:30:00.123Z"


def test_defaults_are_written_and_nulls_that_nobody_said_are_not() -> None:
    said = Placed(order_id="o-1", coupon=None, lines=[Line(sku="s"), Line(sku="t", note=None)])

    assert said.wire() == {
        "orderId": "o-1",
        "priority": "low",
        "coupon": None,
        "lines": [{"sku": "s"}, {"sku": "t", "note": None}],
    }


def test_a_field_that_the_model_does_not_know_goes_along() -> None:
    payload = Cancelled.model_validate({"orderId": "o-1", "reason": "rain"})

    assert CANCELLED.event(payload)["payload"] == {"orderId": "o-1", "reason": "rain"}


@pytest.mark.parametrize("wrap", [lambda e: e, stored, write], ids=["envelope", "stored", "wire"])
def test_an_event_is_read_as_its_payload_however_it_was_come_by(wrap: Any) -> None:
    payload = Placed(order_id="o-1", placed_at=AT, lines=[Line(sku="s")])
    envelope = read(PLACED.event(payload), accepted_at=AT, fallback_id="e", tenant_id=None)
    assert isinstance(envelope, Envelope)

    assert PLACED.read(wrap(envelope)) == payload
    assert CANCELLED.read(wrap(envelope)) is None
    assert SHOP.read(wrap(envelope)) == payload


def test_matching_on_what_a_vocabulary_reads_finds_the_right_case() -> None:
    told = []
    for event in (
        PLACED.event(Placed(order_id="o-1")),
        CANCELLED.event(Cancelled(order_id="o-2")),
        {"type": "user.left", "payload": {}},
    ):
        match SHOP.read(event):
            case Placed(order_id=order, priority="low"):
                told.append(f"placed {order}")
            case Cancelled(order_id=order):
                told.append(f"cancelled {order}")
            case other:
                told.append(str(other))

    assert told == ["placed o-1", "cancelled o-2", "None"]


def test_an_event_of_the_type_that_does_not_fit_is_refused_with_its_place() -> None:
    with pytest.raises(EventRefused, match=r"expected a payload of order\.placed") as caught:
        PLACED.read({"type": "order.placed", "payload": {"lines": [{"sku": 1}]}})

    assert caught.value.reason == "payload_invalid"
    assert {fault.pointer: fault.detail for fault in caught.value.faults} == {
        "/payload/lines/0/sku": "expected text, found something else",
        "/payload/orderId": "expected a required field, found nothing",
    }


@pytest.mark.parametrize("event", [{}, {"type": 7}, {"type": None, "payload": {}}])
def test_what_is_no_event_is_of_no_type(event: dict[str, object]) -> None:
    assert PLACED.read(event) is None
    assert SHOP.read(event) is None


def test_a_type_may_be_named_with_its_payload_and_travels_by_pickle() -> None:
    named = EventType[Placed]("order.placed", Placed, sources=("shop.api",), version=3)

    assert named == PLACED
    assert pickle.loads(pickle.dumps(named)) == PLACED  # noqa: S301  our own bytes


def test_where_events_come_from_and_who_reads_them_is_told_to_the_registry() -> None:
    event = EventType(
        "order.placed",
        Placed,
        event_source="plugin",
        metadata_from={"orderVersion": "/version"},
        consumers=("Billing",),
    )

    assert event.metadata("shop") == {
        "purpose": "An order was placed.",
        "vocabulary": "shop",
        "eventSource": "plugin",
        "metadataFrom": {"orderVersion": "/version"},
        "consumers": ["Billing"],
    }


@pytest.mark.parametrize(
    "metadata", [{"eventSource": "robot"}, {"eventSource": []}, {"metadataFrom": {"a": "b"}}]
)
def test_a_registered_type_can_promise_only_what_the_enrichment_can_keep(
    metadata: dict[str, Any],
) -> None:
    (key,) = metadata

    with pytest.raises(SchemaInvalid) as caught:
        check(Proposal("order.placed", {"type": "object"}, metadata=metadata))

    assert [fault.pointer for fault in caught.value.faults] == [f"/metadata/{key}"]
