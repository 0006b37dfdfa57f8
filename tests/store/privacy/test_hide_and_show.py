"""What is hidden is readable for those who may see it, until its subject is erased."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.store.privacy.support import (
    NOON,
    PAYLOAD,
    PLAIN,
    PLAINTEXTS,
    REGISTRY,
    ROOT,
    accepted,
    judged,
    stored,
    vault,
)

from penstock.base.errors import SetupIncomplete
from penstock.envelope.envelope import JsonValue
from penstock.ingress.lot import Judged
from penstock.ingress.rows import event_line
from penstock.ingress.verdict import Accepted, Reason, Rejected
from penstock.registry.registry import Registry
from penstock.store.privacy.cipher import RootKey
from penstock.store.privacy.hide import Hiding
from penstock.store.privacy.in_memory import KeysInMemory
from penstock.store.privacy.show import mask, reveal
from penstock.store.view import view

CUSTOMER = ROOT.pseudonym("default", "cust-17")


def hidden(item: Judged, keys: KeysInMemory | None = None) -> Accepted:
    return accepted(Hiding(vault(keys)).hide([item], REGISTRY)[0])


def payload_of(verdict: Accepted) -> dict[str, Any]:
    payload = verdict.envelope.payload
    assert isinstance(payload, dict)
    return payload


def revealed(verdict: Accepted, keys: KeysInMemory) -> JsonValue:
    (shown,) = reveal([stored(verdict)], REGISTRY, vault(keys))
    return shown.envelope.payload


def test_nothing_personal_is_in_the_row_that_is_stored() -> None:
    row = event_line(hidden(judged()))

    assert [text for text in PLAINTEXTS if text in row] == []
    assert b"kept as it is" in row
    assert b"cust-17" in row, "the schema does not mark the id itself"


def test_a_hidden_field_names_its_subject_by_a_pseudonym() -> None:
    email = payload_of(hidden(judged()))["email"]

    assert set(email) == {"$enc", "subject"}
    assert email["subject"] == CUSTOMER
    assert email["$enc"].startswith("1.")


def test_those_who_may_see_it_see_exactly_what_was_sent() -> None:
    keys = KeysInMemory()

    assert revealed(hidden(judged(), keys), keys) == PAYLOAD


@pytest.mark.parametrize(
    "value", [1e22, -0.5, 12345678901234567, "", " ", [1, None], {"a": {}}, False]
)
def test_any_value_comes_back_as_it_was(value: JsonValue) -> None:
    keys = KeysInMemory()
    payload = {**PAYLOAD, "address": {"x": value}}

    assert revealed(hidden(judged(payload=payload), keys), keys) == payload


def test_all_others_see_that_there_is_something() -> None:
    masked = mask(stored(hidden(judged())), REGISTRY).envelope.payload

    assert isinstance(masked, dict)
    assert masked["email"] == {"$masked": True, "subject": CUSTOMER}
    assert masked["note"] == "kept as it is"


def test_the_view_masks_unless_it_was_revealed() -> None:
    keys = KeysInMemory()
    event = stored(hidden(judged(), keys))
    (shown,) = reveal([event], REGISTRY, vault(keys))

    assert "$enc" not in json.dumps(view(event, REGISTRY))
    assert view(event, REGISTRY)["payload"]["email"]["$masked"] is True  # type: ignore[index,call-overload]
    assert view(shown, REGISTRY)["payload"] == PAYLOAD


def test_a_type_without_marks_passes_untouched() -> None:
    items = [judged(event_type=PLAIN), judged("evt-2", PLAIN)]

    assert Hiding(vault()).hide(items, REGISTRY) is items
    assert mask(event := stored(accepted(items[0])), REGISTRY) is event


def test_a_registry_without_marks_costs_nothing() -> None:
    items = [judged()]
    plain = Registry([v for v in REGISTRY.versions if v.event_type == PLAIN], mode="open")

    assert Hiding(vault()).hide(items, plain) is items


def test_what_looks_hidden_in_a_type_without_marks_is_left_alone() -> None:
    payload = {"email": {"$enc": "1.AAAA", "subject": "x"}}
    event = stored(accepted(judged(event_type=PLAIN, payload=payload)))

    assert mask(event, REGISTRY).envelope.payload == payload
    assert reveal([event], REGISTRY, vault())[0].envelope.payload == payload


def test_a_rejected_message_passes_untouched() -> None:
    rejected = Judged(b"{", Rejected(b"{", Reason.MALFORMED_JSON, "no"))

    found = Hiding(vault()).hide([rejected, judged()], REGISTRY)

    assert found[0] is rejected
    assert accepted(found[1]).envelope.payload != PAYLOAD


def test_the_same_event_again_has_the_same_content_and_another_ciphertext() -> None:
    keys = KeysInMemory()
    first, again = hidden(judged(), keys), hidden(judged(), keys)

    assert first.content_hash == again.content_hash
    assert payload_of(first)["email"]["$enc"] != payload_of(again)["email"]["$enc"]
    assert first.content_hash != hidden(judged(payload={"customerId": "c"}), keys).content_hash


def test_the_content_hash_cannot_be_guessed_without_the_root_key() -> None:
    item = judged()

    assert hidden(item).content_hash != accepted(item).content_hash
    assert hidden(item).content_hash == ROOT.content(accepted(item).content_hash)


def test_the_door_compares_by_the_hash_that_the_log_keeps() -> None:
    hiding, item = Hiding(vault()), judged()
    once = hiding.keyed(accepted(item), REGISTRY)

    assert once.content_hash == hidden(item).content_hash
    assert once.envelope == accepted(item).envelope, "the door encrypts nothing"
    assert hiding.keyed(once, REGISTRY) == once
    plain = accepted(judged(event_type=PLAIN))
    assert hiding.keyed(plain, REGISTRY) is plain


def test_what_says_the_same_elsewhere_says_the_pseudonym() -> None:
    event = hidden(
        judged(
            tags={"mail": "alice@example.org", "other": "x"},
            correlationId="alice@example.org",
            causationId="evt-0",
            metadata={"who": "alice@example.org", "n": 1},
        )
    ).envelope

    assert event.tags == {"mail": CUSTOMER, "other": "x", "customer": "cust-17", "email": CUSTOMER}
    assert (event.correlation_id, event.causation_id) == (CUSTOMER, "evt-0")
    assert event.metadata == {"who": CUSTOMER, "n": 1}


def test_a_field_that_says_not_whose_it_is_belongs_to_its_event() -> None:
    keys = KeysInMemory()
    payload = {"customerId": "c", "contacts": [{"phone": "+31"}]}
    event = hidden(judged("evt-9", payload=payload), keys)

    own = ROOT.pseudonym("default", "event:evt-9")
    assert payload_of(event)["contacts"][0]["phone"]["subject"] == own
    assert revealed(event, keys) == payload


def test_one_subject_has_one_key_in_all_its_events() -> None:
    keys = KeysInMemory()
    hiding = Hiding(vault(keys))
    hiding.hide([judged("evt-1"), judged("evt-2")], REGISTRY)
    hiding.hide([judged("evt-3")], REGISTRY)

    assert keys.standings([("default", CUSTOMER)])[("default", CUSTOMER)].newest == 1


def test_after_the_erasure_nobody_reads_what_was_and_others_stay_readable() -> None:
    keys = KeysInMemory()
    event = hidden(judged(), keys)
    assert keys.erase(("default", CUSTOMER), NOON) == 1

    shown = revealed(event, keys)

    assert isinstance(shown, dict)
    assert shown["email"] == {"$erased": True, "subject": CUSTOMER}
    assert shown["contacts"] == PAYLOAD["contacts"]


def test_what_happened_before_the_erasure_and_comes_after_it_is_stored_erased() -> None:
    keys = KeysInMemory()
    keys.erase(("default", CUSTOMER), NOON)
    late = hidden(judged(occurredAt="2026-03-01T12:00:00.000Z"), keys)

    assert payload_of(late)["email"] == {"$enc": "", "subject": CUSTOMER}
    shown = revealed(late, keys)
    assert isinstance(shown, dict)
    assert shown["email"] == {"$erased": True, "subject": CUSTOMER}
    assert keys.standings([("default", CUSTOMER)])[("default", CUSTOMER)].wrapped is None


def test_a_subject_that_comes_back_has_a_new_key_and_the_old_data_stays_erased() -> None:
    keys = KeysInMemory()
    old = hidden(judged(), keys)
    keys.erase(("default", CUSTOMER), NOON)
    new = hidden(judged("evt-2", occurredAt="2026-03-01T12:00:00.001Z"), keys)

    assert payload_of(new)["email"]["$enc"].startswith("2.")
    assert revealed(new, keys) == PAYLOAD
    shown = revealed(old, keys)
    assert isinstance(shown, dict)
    assert "$erased" in shown["email"]  # type: ignore[operator]


def test_old_and_new_events_of_one_lot_are_told_apart() -> None:
    keys = KeysInMemory()
    keys.erase(("default", CUSTOMER), NOON)
    old, new = judged("evt-1"), judged("evt-2", occurredAt="2026-03-02T00:00:00.000Z")

    found = [payload_of(accepted(item)) for item in Hiding(vault(keys)).hide([old, new], REGISTRY)]

    assert [each["email"]["$enc"][:2] for each in found] == ["", "2."]


def test_a_ciphertext_moved_to_another_event_is_shown_as_unreadable() -> None:
    keys = KeysInMemory()
    one, other = hidden(judged("evt-1"), keys), hidden(judged("evt-2"), keys)
    swapped = other._replace(envelope=other.envelope._replace(payload=one.envelope.payload))

    shown = revealed(swapped, keys)

    assert isinstance(shown, dict)
    assert shown["email"] == {"$unreadable": True, "subject": CUSTOMER}


def test_keys_of_another_root_stop_everything_instead_of_making_new_ones() -> None:
    keys = KeysInMemory()
    hidden(judged(), keys)
    other = RootKey(b"o" * 32)
    keys._kept = {("default", other.pseudonym("default", "cust-17")): [b"x" * 60]}

    with pytest.raises(SetupIncomplete, match="wrapped by another root key"):
        Hiding(vault(keys, other)).hide([judged()], REGISTRY)


class ForgetfulKeys(KeysInMemory):
    """Keys that are never kept."""

    def create(self, wrapped: Any) -> None:
        """Lose them."""


def test_a_store_that_keeps_no_keys_is_told_of() -> None:
    with pytest.raises(SetupIncomplete, match="expected the keys that were just made"):
        hidden(judged(), ForgetfulKeys())


def test_a_whole_page_is_revealed_with_one_question() -> None:
    asked: list[int] = []

    class Counting(KeysInMemory):
        def find(self, places: Any) -> Any:
            asked.append(len(places))
            return super().find(places)

    keys = Counting()
    events = [stored(hidden(judged(f"evt-{n}"), keys), n) for n in range(20)]
    plain = stored(accepted(judged("p", PLAIN)), 99)

    shown = reveal([*events, plain], REGISTRY, vault(keys))

    assert [each.envelope.payload for each in shown] == [PAYLOAD] * 21
    assert asked == [3], "three subjects, one key each"
