"""Personal data stays hidden through folds and upcasters, and is shown to those who may see it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.store.privacy.support import (
    CUSTOMER,
    MARKED,
    NOON,
    PAYLOAD,
    PLAIN,
    PLAINTEXTS,
    REGISTRY,
    accepted,
    judged,
    stored,
    vault,
    version,
)

from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.registry.declare import EventType, Payload, Vocabulary
from penstock.registry.registry import Registry
from penstock.registry.upcast import Upcasts
from penstock.store.privacy.hide import Hiding
from penstock.store.privacy.in_memory import KeysInMemory
from penstock.store.privacy.within import folded, mask_within, reveal_within
from penstock.store.timetravel.diff import changes_between
from penstock.store.timetravel.reducer import LAST_WRITE_WINS, merge
from penstock.store.timetravel.state import State, fold


class Log:
    """Events hidden as they are stored, and folded."""

    def __init__(self, registry: Registry = REGISTRY) -> None:
        self.keys = KeysInMemory()
        self.registry = registry
        self.events: list[Stored] = []

    def tell(self, payload: JsonObject, event_type: str = MARKED) -> None:
        number = len(self.events) + 1
        item = judged(f"evt-{number}", event_type, payload=payload)
        hidden = accepted(Hiding(vault(self.keys)).hide([item], REGISTRY)[0])
        self.events.append(stored(hidden, number))

    def state(self) -> JsonObject:
        see = folded(self.registry).see
        seen = [see(event) for event in self.events]
        return fold(LAST_WRITE_WINS, State(), seen, upto=len(seen)).value

    def revealed(self, value: JsonValue) -> JsonValue:
        return reveal_within([value], "default", vault(self.keys))[0]


def masked(value: JsonValue) -> Any:
    return mask_within([value], "default")[0]


def test_a_state_holds_no_plaintext_and_opens_to_what_was_sent() -> None:
    log = Log()
    log.tell(PAYLOAD)

    state = log.state()

    assert [text for text in PLAINTEXTS if text in encode(state)] == []
    assert log.revealed(state) == PAYLOAD


def test_for_all_others_each_hidden_field_is_a_word() -> None:
    log = Log()
    log.tell(PAYLOAD)

    seen = masked(log.state())

    assert seen["email"] == seen["address"] == {"$masked": True, "subject": seen["age"]["subject"]}
    assert set(seen["contacts"][0]["phone"]) == {"$masked", "subject"}
    assert seen["note"] == PAYLOAD["note"]


def test_values_of_several_events_open_together() -> None:
    log = Log()
    log.tell(PAYLOAD)
    log.tell({"customerId": "cust-17", "email": "new@example.org"})
    log.tell({"customerId": "cust-18", "age": 42})

    assert log.revealed(log.state()) == {
        **PAYLOAD,
        "customerId": "cust-18",
        "email": "new@example.org",
        "age": 42,
    }


def test_an_erased_subject_is_gone_from_a_state_and_no_other_is() -> None:
    log = Log()
    log.tell(PAYLOAD)
    subject = masked(log.state())["email"]["subject"]

    log.keys.erase(("default", subject), NOON)
    seen: Any = log.revealed(log.state())

    assert seen["email"] == seen["age"] == {"$erased": True, "subject": subject}
    assert seen["contacts"][0]["phone"] == "+31 6 1234"


def test_a_hidden_object_is_replaced_whole_and_compared_whole() -> None:
    log = Log()
    log.tell({"customerId": "c", "address": {"city": "Utrecht"}})
    before = log.state()
    log.tell({"customerId": "c", "address": {"street": "Oudegracht"}})
    after = log.state()

    assert log.revealed(after) == {"customerId": "c", "address": {"street": "Oudegracht"}}
    assert [change.pointer for change in changes_between(before, after)] == ["/address"]


@pytest.mark.parametrize("plain", [{"city": "Paris"}, "Paris", None])
def test_what_was_hidden_never_mixes_with_what_was_not(plain: JsonValue) -> None:
    log = Log()
    log.tell({"customerId": "c", "address": {"city": "Utrecht"}})
    hidden = log.state()

    gone = merge(hidden, {"address": plain})
    back = merge(gone, hidden)

    assert gone == ({"customerId": "c", "address": plain} if plain else {"customerId": "c"})
    assert back == hidden


def test_a_hidden_field_opens_where_an_upcaster_took_it() -> None:
    newer: JsonObject = {"type": "object", "properties": {"contact": {"type": "object"}}}

    class Customer(Payload):
        """A customer."""

    def moved(payload: JsonObject) -> JsonObject:
        return {"contact": {"mail": payload["email"]}}

    shop = Vocabulary("shop", (EventType(MARKED, Customer, version=2, upcasts={1: moved}),))
    second = replace(version(MARKED, newer), version=2)
    registry = Registry([version(MARKED, CUSTOMER), second], mode="strict", upcasts=Upcasts([shop]))
    log = Log(registry)
    log.tell({"customerId": "c", "email": "alice@example.org"})

    assert masked(log.state())["contact"]["mail"]["$masked"] is True
    assert log.revealed(log.state()) == {"contact": {"mail": "alice@example.org"}}


def test_an_object_of_a_publisher_that_looks_like_a_hidden_field_opens_nothing() -> None:
    log = Log()
    log.tell(PAYLOAD)
    sealed: Any = log.events[0].envelope.payload
    copied = {**sealed["email"], "event": "evt-2", "at": "/email"}
    log.tell({"copied": copied, "words": {"$enc": 1, "subject": 2, "event": 3, "at": []}}, PLAIN)

    seen: Any = log.revealed(log.state())

    assert set(seen["copied"]) == {"$unreadable", "subject"}
    assert set(seen["words"]) == {"$erased", "subject"}


def test_events_of_a_registry_without_marks_are_seen_as_stored() -> None:
    plain = Registry([version(PLAIN, {"type": "object"})], mode="strict")

    assert folded(plain).name == ""
    assert folded(REGISTRY).name != ""


def test_snapshots_made_under_other_marks_have_another_name() -> None:
    fewer: JsonObject = {"properties": {"email": {"x-pii": {"subject": "/customerId"}}}}
    other = Registry([version(MARKED, fewer)], mode="strict")

    assert folded(other).name != folded(REGISTRY).name
