"""A proposed version is weighed against schemas, stored events and readers, in plain words."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.base.clock import FixedClock
from penstock.base.errors import QueryTooSlow, SchemaBreaking, SchemaInvalid
from penstock.envelope.envelope import Envelope, JsonObject, JsonValue, Severity, Stored
from penstock.registry.book import RegistryBook
from penstock.registry.declare import EventType, Payload, Vocabulary
from penstock.registry.evidence import KeptPayload, Window, gather
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.proposal import Override, Proposal
from penstock.registry.readers import Reader
from penstock.registry.review import Reviewer
from penstock.store.compatibility.in_memory import InMemoryPayloads

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TYPE = "order.placed"
ONE: JsonObject = {"type": "object", "properties": {"total": {"type": "integer"}}}
TEXT_TOTAL: JsonObject = {"type": "object", "properties": {"total": {"type": "string"}}}
WITH_NOTE: JsonObject = {
    "type": "object",
    "properties": {"total": {"type": "integer"}, "note": {"type": "string"}},
}


def stored(
    position: int, payload: JsonValue, *, source: str = "shop.api", age: timedelta = timedelta(0),
    tenant: str = "default", version: int | None = 1, event_type: str = TYPE,
) -> Stored:  # fmt: skip
    envelope = Envelope(
        f"e-{position}", event_type, source, NOW - age, payload, tenant_id=tenant,
        schema_version=version,
    )  # fmt: skip
    return Stored(position, envelope, NOW - age, Severity.INFO, "default", None, b"")


def book(*proposals: Proposal, vocabularies: tuple[Vocabulary, ...] = ()) -> RegistryBook:
    found = RegistryBook(InMemoryRegistryStore(FixedClock(NOW)), mode="strict")
    found.declare(vocabularies)
    for proposal in proposals or (Proposal(TYPE, ONE),):
        found.register(proposal, by="ana")
    return found


class Triggers:
    """A room that knows who reads what."""

    def __init__(self, *readers: Reader) -> None:
        self._readers = readers

    def reading(self, _event_type: str, pointers: Collection[str]) -> list[Reader]:
        return [each for each in self._readers if each.pointer in pointers]


def reviewer(*events: Stored, known: RegistryBook | None = None, **more: Any) -> Reviewer:
    registry = (known or book()).current
    return Reviewer(registry, InMemoryPayloads(events), clock=FixedClock(NOW), **more)


def test_the_first_version_of_a_type_breaks_nothing() -> None:
    review = reviewer().review(Proposal("order.paid", ONE), tenant_id="default")

    assert (review.version, review.before, review.is_breaking) == (1, None, False)
    assert review.wire()["verdict"] == "first"


def test_a_compatible_version_says_what_differs_and_that_stored_events_fit() -> None:
    found = reviewer(stored(1, {"total": 1})).review(Proposal(TYPE, WITH_NOTE), tenant_id="default")

    assert not found.is_breaking
    assert found.wire()["verdict"] == "full"
    assert found.sentences == ["/note was added", "of 1 event of the last 30 days none would fail"]


def test_an_unchanged_schema_is_not_tried_on_anything() -> None:
    found = reviewer(stored(1, {"total": "x"})).review(Proposal(TYPE, ONE), tenant_id="default")

    assert (found.version, found.before, found.evidence) == (1, 1, None)
    assert found.sentences == ["nothing differs"]


def test_stored_events_that_would_fail_are_counted_and_grouped_with_samples() -> None:
    events = [stored(n, {"total": n}, source=f"shop.{n % 2}") for n in range(1, 8)]
    events += [stored(n, {"total": "ok"}) for n in range(8, 11)]

    found = reviewer(*events).review(Proposal(TYPE, TEXT_TOTAL), tenant_id="default")

    assert found.evidence is not None
    assert (found.evidence.examined, found.evidence.failing) == (10, 7)
    assert found.evidence.is_complete
    (group,) = found.evidence.groups
    assert (group.pointer, group.detail) == ("/total", "expected string, found integer")
    assert group.events == 7
    assert group.sources == (("shop.1", 4), ("shop.0", 3))
    assert group.samples == (("e-7", 7), ("e-6", 6), ("e-5", 5))
    assert found.evidence.sentence == (
        "of 10 events of the last 30 days 7 would fail: /total expected string, found integer (7)"
    )


def test_an_undeclared_field_that_was_really_sent_makes_an_addition_breaking() -> None:
    events = [stored(1, {"total": 1, "note": 5}), stored(2, {"total": 2})]

    found = reviewer(*events).review(Proposal(TYPE, WITH_NOTE), tenant_id="default")

    assert found.wire()["verdict"] == "full"
    assert found.is_breaking
    assert found.failing == 1


def test_places_in_a_list_are_one_cause() -> None:
    schema: JsonObject = {"properties": {"lines": {"items": {"required": ["sku"]}}}}
    payload: JsonValue = {"lines": [{}, {"sku": 1}, {}]}

    found = reviewer(stored(1, payload)).review(Proposal(TYPE, schema), tenant_id="default")

    assert found.evidence is not None
    assert [(g.pointer, g.events) for g in found.evidence.groups] == [("/lines/*/sku", 1)]


def test_events_of_others_and_older_ones_are_not_looked_at() -> None:
    events = [
        stored(1, {"total": 1}, age=timedelta(days=8)),
        stored(2, {"total": 1}, tenant="other"),
        stored(3, {"total": 1}, event_type="order.paid"),
        stored(4, {"total": 1}),
    ]

    found = reviewer(*events).review(Proposal(TYPE, TEXT_TOTAL), tenant_id="default", days=7)

    assert found.evidence is not None
    assert (found.evidence.examined, found.evidence.window.days) == (1, 7)


def test_a_personal_field_that_is_stored_hidden_is_not_tried() -> None:
    hidden: JsonObject = {"$enc": "1.xyz", "subject": "s"}
    events = [stored(1, {"total": hidden}), stored(2, {"total": hidden, "note": 5})]

    found = reviewer(*events).review(Proposal(TYPE, WITH_NOTE), tenant_id="default")

    assert found.evidence is not None
    assert [(g.pointer, g.events) for g in found.evidence.groups] == [("/note", 1)]


class Renamed(Payload):
    """An order was placed."""

    amount: int


def test_stored_events_are_tried_after_their_upcasters() -> None:
    def rename(payload: JsonObject) -> JsonObject:
        return {"amount": payload["total"]}

    page = Vocabulary("shop", (EventType(TYPE, Renamed, version=2, upcasts={1: rename}),))
    known = book(Proposal(TYPE, ONE, version=1))
    known.declare((page,))
    proposal = Proposal(TYPE, {**EventType(TYPE, Renamed).schema(), "title": "x"}, version=3)
    events = [stored(1, {"total": 5}), stored(2, {"wrong": 5}), stored(3, {"amount": 5}, version=2)]

    found = reviewer(*events, known=known).review(proposal, tenant_id="default")

    assert found.evidence is not None
    assert found.failing == 1
    assert "KeyError" in found.evidence.groups[0].detail


def test_whoever_reads_a_field_that_is_gone_makes_it_breaking_and_is_named() -> None:
    readers = Triggers(Reader("trigger", "big-orders", "/total"), Reader("view", "all", "/other"))

    found = reviewer(readers=lambda _tenant: readers).review(
        Proposal(TYPE, {"type": "object"}), tenant_id="default"
    )

    assert found.wire()["verdict"] == "full"
    assert found.is_breaking
    assert found.sentences[-1] == "the trigger big-orders reads /total"
    assert found.wire()["readers"] == [
        {"kind": "trigger", "name": "big-orders", "pointer": "/total"}
    ]


def test_a_proposal_that_could_never_be_registered_is_refused() -> None:
    with pytest.raises(SchemaInvalid):
        reviewer().review(Proposal(TYPE, {"type": "nonsense"}), tenant_id="default")


# Admission.


def test_a_breaking_proposal_is_refused_with_everything_that_breaks() -> None:
    desk = reviewer(
        stored(1, {"total": 1}),
        readers=lambda _tenant: Triggers(Reader("trigger", "big-orders", "/total")),
    )

    with pytest.raises(SchemaBreaking) as refused:
        desk.admit(Proposal(TYPE, TEXT_TOTAL), tenant_id="default")

    assert [(f.pointer, f.detail) for f in refused.value.faults] == [
        ("/total", "was integer, is now string"),
        ("/total", "expected string, found integer, in 1 event stored"),
        ("/total", "is read by the trigger big-orders"),
    ]
    assert "of 1 event of the last 30 days 1 would fail" in refused.value.detail


def test_an_override_takes_along_what_breaks_beside_the_schema() -> None:
    desk = reviewer(stored(1, {"total": 1}))

    admitted = desk.admit(
        Proposal(TYPE, TEXT_TOTAL, override=Override("we know")), tenant_id="default"
    )

    said = "of 1 event of the last 30 days 1 would fail: /total expected string, found integer (1)"
    assert admitted.override == Override("we know", (said,))


@pytest.mark.parametrize(
    "proposal",
    [
        Proposal(TYPE, TEXT_TOTAL, status="draft"),
        Proposal("order.paid", TEXT_TOTAL),
        Proposal(TYPE, ONE, status="deprecated"),
        Proposal(TYPE, WITH_NOTE),
    ],
)
def test_what_breaks_nothing_is_admitted_as_it_is(proposal: Proposal) -> None:
    assert reviewer(stored(1, {"total": 1})).admit(proposal, tenant_id="default") is proposal


def test_publishing_a_draft_that_breaks_is_refused() -> None:
    known = book(Proposal(TYPE, ONE), Proposal(TYPE, TEXT_TOTAL, status="draft"))

    with pytest.raises(SchemaBreaking):
        reviewer(known=known).admit(
            Proposal(TYPE, TEXT_TOTAL, version=2, status="active"), tenant_id="default"
        )


# Looking at stored events stays within its limits.


class Endless:
    """More events than anybody wants to look at."""

    def __init__(self, *, too_slow_after: int | None = None) -> None:
        self.pages = 0
        self._too_slow_after = too_slow_after

    def page(self, _tenant_id: str, _event_type: str, **asked: Any) -> list[KeptPayload]:
        self.pages += 1
        if self._too_slow_after is not None and self.pages > self._too_slow_after:
            raise QueryTooSlow("too slow")
        first = 10**9 if asked["before"] is None else asked["before"] - 1
        return [KeptPayload(first - n, "e", "s", 1, {}) for n in range(asked["limit"])]


def ticking(by: float) -> Iterator[float]:
    at = 0.0
    while True:
        at += by
        yield at


def gathered(log: Endless, window: Window, tick: float = 0.0) -> tuple[int, bool]:
    clock = ticking(tick)
    found = gather(
        log, lambda _kept: (), window, tenant_id="t", event_type=TYPE, seconds=lambda: next(clock)
    )
    return found.examined, found.is_complete


def test_no_more_events_are_looked_at_than_allowed_and_it_says_so() -> None:
    assert gathered(Endless(), Window(NOW, 30, events_max=4_500)) == (4_500, False)


def test_when_the_time_is_used_up_what_was_seen_counts() -> None:
    examined, complete = gathered(Endless(), Window(NOW, 30, seconds_max=10), tick=2.0)

    assert 0 < examined < 20_000
    assert not complete


def test_a_page_that_takes_too_long_ends_the_search() -> None:
    assert gathered(Endless(too_slow_after=1), Window(NOW, 30)) == (2_000, False)


def test_an_incomplete_search_says_that_it_saw_the_newest_only() -> None:
    clock = ticking(0)
    found = gather(
        Endless(), lambda _kept: (), Window(NOW, 1, events_max=12_431), tenant_id="t",
        event_type=TYPE, seconds=lambda: next(clock),
    )  # fmt: skip

    assert found.sentence == "of the newest 12,431 events of the last day none would fail"
