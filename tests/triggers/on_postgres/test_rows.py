"""A delivery, an entry of its history and a held event come back from their rows as they were."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.triggers.book.rows import (
    DELIVERY,
    HELD,
    HISTORY,
    delivery_of,
    delivery_row,
    held_of,
    held_row,
    history_of_row,
    history_row,
)
from penstock.triggers.delivery import (
    Delivery,
    Held,
    HistoryEntry,
    Reason,
    RetryState,
    Role,
    Stage,
    Status,
)

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
numbers = st.integers(0, 2**31 - 1)
instants = st.datetimes(
    datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)  # noqa: DTZ001
)  # fmt: skip
objects = st.dictionaries(words, st.none() | st.booleans() | numbers | words, max_size=3)
json = st.recursive(
    st.booleans() | numbers | words, lambda v: st.lists(v, max_size=3), max_leaves=4
)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


deliveries = st.builds(
    Delivery, id=words, tenant_id=words, trigger_id=words, trigger_version=numbers,
    workflow_slug=words, event_id=words, event_position=numbers, event_type=words,
    event_source=words, correlation_id=maybe(words), status=st.sampled_from(Status),
    stage=st.sampled_from(Stage), reason=maybe(st.sampled_from(Reason)), created_at=instants,
    updated_at=instants, first_pass=numbers, last_pass=numbers, ticket=numbers,
    shadow=st.booleans(), role=maybe(st.sampled_from(Role)), attempts=numbers,
    last_error=maybe(words), run_id=maybe(words), run_key=maybe(words), parameters=maybe(json),
    dedupe_key=maybe(words), group_key=maybe(words), group_id=maybe(words),
    next_attempt_at=maybe(instants), throttled_until=maybe(instants),
    retry_state=st.sampled_from(RetryState), retry_attempts=numbers, retry_metadata=objects,
)  # fmt: skip
entries = st.builds(
    HistoryEntry, delivery_id=words, pass_number=numbers, judged_at=instants,
    trigger_version=numbers, attempt=numbers, status=st.sampled_from(Status),
    stage=st.sampled_from(Stage), reason=maybe(st.sampled_from(Reason)), detail=objects,
)  # fmt: skip
held_events = st.builds(
    Held, position=numbers, event_id=words, tenant_id=words, source=words, held_pass=numbers,
    held_at=instants, reason=words, next_attempt_at=maybe(instants), attempts=numbers,
    retry_state=st.sampled_from(RetryState), released_pass=maybe(numbers), metadata=objects,
)  # fmt: skip


@given(deliveries)
def test_a_delivery_survives_its_row(delivery: Delivery) -> None:
    row = delivery_row(delivery)

    assert len(row) == len(DELIVERY)
    assert delivery_of(row) == delivery


@given(entries)
def test_an_entry_of_history_survives_its_row(entry: HistoryEntry) -> None:
    row = history_row(entry)

    assert len(row) == len(HISTORY)
    assert history_of_row(row) == entry


@given(held_events)
def test_a_held_event_survives_its_row(held: Held) -> None:
    row = held_row(held)

    assert len(row) == len(HELD)
    assert held_of(row) == held
