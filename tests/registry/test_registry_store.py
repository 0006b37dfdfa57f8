"""Every registry store keeps the same promises: in memory and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from penstock.base.clock import FixedClock
from penstock.base.errors import SchemaBreaking, SchemaConflict, SchemaInvalid
from penstock.base.on_postgres import open_pool
from penstock.envelope.envelope import JsonObject
from penstock.registry.book import RegistryStore
from penstock.registry.declare import Status
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.on_postgres import PostgresRegistryStore
from penstock.registry.proposal import Override, Proposal
from penstock.registry.schema import schema_hash

TYPE = "orders.order.placed"
ONE: JsonObject = {"type": "object", "required": ["id"]}
TWO: JsonObject = {"type": "object", "required": ["id"], "properties": {"total": {}}}
BROKEN: JsonObject = {"type": "object", "required": ["id", "total"]}


@pytest.fixture(params=["in_memory", "on_postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[RegistryStore]:
    if request.param == "in_memory":
        yield InMemoryRegistryStore()
        return
    pool = open_pool(request.getfixturevalue("database"), "owner", size_max=8)
    yield PostgresRegistryStore(pool)
    pool.close()


def kept(store: RegistryStore) -> list[tuple[int, Status]]:
    return [(each.version, each.status) for each in store.load()[1]]


def test_a_new_store_is_empty(store: RegistryStore) -> None:
    assert store.load() == (store.revision(), [])


def test_the_first_version_is_one_and_active(store: RegistryStore) -> None:
    version, changed = store.register(Proposal(TYPE, ONE), by="ana")

    assert changed
    assert (version.version, version.status) == (1, "active")
    assert version.schema_hash == schema_hash(ONE)
    assert version.created_by == version.updated_by == "ana"
    assert version.created_at == version.updated_at
    assert store.load()[1] == [version]


def test_the_same_schema_again_changes_nothing(store: RegistryStore) -> None:
    first, _ = store.register(Proposal(TYPE, ONE), by="ana")
    before = store.revision()

    again, changed = store.register(Proposal(TYPE, dict(reversed(ONE.items()))), by="bea")

    assert (again, changed) == (first, False)
    assert store.revision() == before


def test_another_schema_without_a_version_becomes_the_next_one(store: RegistryStore) -> None:
    store.register(Proposal(TYPE, ONE), by="ana")
    version, changed = store.register(Proposal(TYPE, TWO), by="ana")

    assert (version.version, changed) == (2, True)
    assert kept(store) == [(1, "active"), (2, "active")]


def test_going_back_to_an_older_schema_is_a_new_version(store: RegistryStore) -> None:
    for schema in (ONE, TWO, ONE):
        store.register(Proposal(TYPE, schema), by="ana")

    assert kept(store) == [(1, "active"), (2, "active"), (3, "active")]


def test_registering_a_named_version_again_changes_nothing(store: RegistryStore) -> None:
    store.register(Proposal(TYPE, ONE, version=1), by="ana")
    store.register(Proposal(TYPE, TWO, version=2), by="ana")

    version, changed = store.register(Proposal(TYPE, ONE, version=1), by="ana")

    assert (version.version, changed) == (1, False)


def test_a_version_may_be_any_number_that_is_free(store: RegistryStore) -> None:
    store.register(Proposal(TYPE, ONE, version=7), by="ana")
    version, _ = store.register(Proposal(TYPE, TWO), by="ana")

    assert version.version == 8


@pytest.mark.parametrize("status", ["active", "deprecated"])
def test_another_schema_under_a_published_version_is_refused(
    store: RegistryStore, status: Status
) -> None:
    store.register(Proposal(TYPE, ONE, status=status), by="ana")
    before = store.load()

    with pytest.raises(SchemaConflict, match=r"orders\.order\.placed version 1"):
        store.register(Proposal(TYPE, TWO, version=1), by="ana")

    assert store.load() == before


def test_a_draft_may_be_changed_until_it_is_published(store: RegistryStore) -> None:
    store.register(Proposal(TYPE, ONE, status="draft"), by="ana")
    version, changed = store.register(Proposal(TYPE, TWO, version=1), by="bea")

    assert changed
    assert (version.schema, version.status) == (TWO, "draft")
    assert (version.created_by, version.updated_by) == ("ana", "bea")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("draft", "active"),
        ("draft", "deprecated"),
        ("active", "deprecated"),
        ("deprecated", "active"),
    ],
)
def test_the_status_of_a_version_can_change(
    store: RegistryStore, before: Status, after: Status
) -> None:
    store.register(Proposal(TYPE, ONE, status=before), by="ana")
    revision = store.revision()

    version, changed = store.register(Proposal(TYPE, ONE, status=after), by="bea")

    assert (version.version, version.status, changed) == (1, after, True)
    assert version.updated_by == "bea"
    assert store.revision() > revision


@pytest.mark.parametrize("status", ["active", "deprecated"])
def test_a_published_version_never_becomes_a_draft_again(
    store: RegistryStore, status: Status
) -> None:
    store.register(Proposal(TYPE, ONE, status=status), by="ana")

    with pytest.raises(SchemaConflict, match="stay published"):
        store.register(Proposal(TYPE, ONE, status="draft"), by="ana")


@pytest.mark.parametrize("status", ["draft", "active", "deprecated"])
def test_a_status_left_out_stays_as_it_is(store: RegistryStore, status: Status) -> None:
    store.register(Proposal(TYPE, ONE, status=status), by="ana")

    version, changed = store.register(Proposal(TYPE, ONE), by="bea")

    assert (version.status, changed) == (status, False)


def test_metadata_left_out_stays_and_metadata_given_replaces(store: RegistryStore) -> None:
    store.register(Proposal(TYPE, ONE, metadata={"severity": "warning"}), by="ana")
    unsaid, unsaid_changed = store.register(Proposal(TYPE, ONE), by="ana")
    said, said_changed = store.register(Proposal(TYPE, ONE, metadata={"purpose": "x"}), by="ana")

    assert (unsaid.metadata, unsaid_changed) == ({"severity": "warning"}, False)
    assert (said.metadata, said_changed) == ({"purpose": "x"}, True)


def test_types_do_not_mix(store: RegistryStore) -> None:
    store.register(Proposal(TYPE, ONE), by="ana")
    version, _ = store.register(Proposal("orders.order.paid", TWO), by="ana")

    assert version.version == 1
    assert [each.event_type for each in store.load()[1]] == ["orders.order.paid", TYPE]


@pytest.mark.parametrize(
    ("proposal", "pointer"),
    [
        (Proposal("orders", ONE), "/eventType"),
        (Proposal("Orders.Order", ONE), "/eventType"),
        (Proposal("", ONE), "/eventType"),
        (Proposal(TYPE, ONE, version=0), "/version"),
        (Proposal(TYPE, ONE, version=-1), "/version"),
        (Proposal(TYPE, ONE, version=2**31), "/version"),
        (Proposal(TYPE, {"type": "nonsense"}), "/schema/type"),
        (Proposal(TYPE, {"items": {"$ref": "https://example.org/x"}}), "/schema/items/$ref"),
        (Proposal(TYPE, ONE, metadata={"severity": "loud"}), "/metadata/severity"),
        (Proposal(TYPE, ONE, metadata={"severity": []}), "/metadata/severity"),
        (Proposal(TYPE, ONE, metadata={"links": {"assetIds": "x"}}), "/metadata/links"),
        (Proposal(TYPE, ONE, metadata={"links": {"other": "/x"}}), "/metadata/links"),
        (Proposal(TYPE, ONE, metadata={"tags": {"a": 1}}), "/metadata/tags"),
        (Proposal(TYPE, ONE, metadata={"derivedRequires": "id"}), "/metadata/derivedRequires"),
        (Proposal(TYPE, ONE, metadata={"sources": [1]}), "/metadata/sources"),
        (Proposal(TYPE, ONE, metadata={"needsUuid7": "yes"}), "/metadata/needsUuid7"),
        (Proposal(TYPE, ONE, metadata={"purpose": "x" * 20_000}), "/metadata"),
        (Proposal(TYPE, ONE, metadata={"purpose": 3}), "/metadata/purpose"),
        (Proposal(TYPE, ONE, metadata={"consumers": "all"}), "/metadata/consumers"),
        (Proposal(TYPE, ONE, metadata={"override": {"reason": "me"}}), "/metadata/override"),
    ],
)
def test_a_proposal_that_cannot_be_kept_is_refused_with_its_place(
    proposal: Proposal, pointer: str
) -> None:
    with pytest.raises(SchemaInvalid) as refused:
        InMemoryRegistryStore().register(proposal, by="ana")

    assert [fault.pointer for fault in refused.value.faults] == [pointer]


def test_every_fault_of_a_proposal_is_said_at_once(store: RegistryStore) -> None:
    wrong = Proposal("x", {"type": 3}, version=0, metadata={"severity": 1})

    with pytest.raises(SchemaInvalid) as refused:
        store.register(wrong, by="ana")

    assert len(refused.value.faults) == 4
    assert store.load()[1] == []


def test_a_schema_comes_back_exactly(store: RegistryStore) -> None:
    schema: JsonObject = {
        "properties": {
            "z": {"const": 1.5},
            "a": {"maximum": Decimal("10.00000000000000000000000000000001")},
            "é": {"enum": [None, True, 9_007_199_254_740_993, "\u2028"]},
        },
    }

    version, _ = store.register(Proposal(TYPE, schema), by="ana")

    (loaded,) = store.load()[1]
    assert loaded == version
    assert loaded.schema == schema
    assert schema_hash(loaded.schema) == version.schema_hash


def test_the_revision_grows_with_every_change(store: RegistryStore) -> None:
    seen = [store.revision()]
    for schema in (ONE, TWO):
        store.register(Proposal(TYPE, schema), by="ana")
        seen.append(store.revision())

    assert seen == sorted(set(seen))
    assert store.load()[0] == seen[-1]


def at_once(count: int, register: Callable[[int], object]) -> None:
    with ThreadPoolExecutor(count) as threads:
        for done in [threads.submit(register, n) for n in range(count)]:
            done.result()


def test_the_same_schema_registered_by_many_at_once_is_one_version(store: RegistryStore) -> None:
    at_once(8, lambda n: store.register(Proposal(TYPE, ONE), by=f"t{n}"))

    assert kept(store) == [(1, "active")]


def test_different_schemas_registered_at_once_are_different_versions(store: RegistryStore) -> None:
    at_once(8, lambda n: store.register(Proposal(TYPE, {"title": f"{n}"}), by=f"t{n}"))

    versions = store.load()[1]
    assert [each.version for each in versions] == list(range(1, 9))
    assert len({each.schema_hash for each in versions}) == 8


# Compatibility.


def test_a_version_that_breaks_the_one_before_it_is_refused(store: RegistryStore) -> None:
    store.register(Proposal(TYPE, ONE), by="ana")
    before = store.load()

    with pytest.raises(SchemaBreaking) as refused:
        store.register(Proposal(TYPE, BROKEN), by="ana")

    assert [(f.pointer, f.detail) for f in refused.value.faults] == [("/total", "is required now")]
    assert "/total is required now" in refused.value.detail
    assert store.load() == before


def test_an_override_lets_it_in_and_is_kept_with_it(store: RegistryStore) -> None:
    store.register(Proposal(TYPE, ONE), by="ana")
    meant = Proposal(
        TYPE, BROKEN, metadata={"purpose": "x"}, override=Override("the shop is closed", ("more",))
    )

    version, changed = store.register(meant, by="bea")

    assert (version.version, changed) == (2, True)
    assert version.metadata == {
        "purpose": "x",
        "override": {
            "reason": "the shop is closed",
            "by": "bea",
            "breaks": ["/total is required now", "more"],
        },
    }
    again, changed_again = store.register(meant, by="cem")
    assert (again, changed_again) == (version, False)


def test_an_override_of_nothing_leaves_no_trace(store: RegistryStore) -> None:
    store.register(Proposal(TYPE, ONE), by="ana")

    version, _ = store.register(Proposal(TYPE, TWO, override=Override("to be sure")), by="ana")

    assert version.metadata == {}


def test_a_draft_is_free_and_is_weighed_when_it_is_published(store: RegistryStore) -> None:
    store.register(Proposal(TYPE, ONE), by="ana")
    store.register(Proposal(TYPE, BROKEN, status="draft"), by="ana")

    for status in ("active", "deprecated"):
        with pytest.raises(SchemaBreaking):
            store.register(Proposal(TYPE, BROKEN, version=2, status=status), by="ana")

    assert kept(store) == [(1, "active"), (2, "draft")]


def test_a_draft_before_it_is_nothing_to_break(store: RegistryStore) -> None:
    store.register(Proposal(TYPE, ONE, status="draft"), by="ana")

    version, _ = store.register(Proposal(TYPE, BROKEN), by="ana")

    assert version.version == 2


def test_a_deprecated_version_still_counts_as_what_was_promised(store: RegistryStore) -> None:
    store.register(Proposal(TYPE, ONE, status="deprecated"), by="ana")

    with pytest.raises(SchemaBreaking):
        store.register(Proposal(TYPE, BROKEN), by="ana")


def test_a_version_is_weighed_against_the_one_before_it_and_no_other(store: RegistryStore) -> None:
    store.register(Proposal(TYPE, BROKEN, version=5), by="ana")

    version, _ = store.register(Proposal(TYPE, ONE, version=3), by="ana")

    assert version.version == 3


def test_of_two_breaking_versions_registered_at_once_none_slips_through(
    store: RegistryStore,
) -> None:
    store.register(Proposal(TYPE, {"type": "object"}), by="ana")

    def attempt(n: int) -> None:
        with pytest.raises(SchemaBreaking):
            store.register(Proposal(TYPE, {"type": "object", "required": [f"f{n}"]}), by="ana")

    at_once(8, attempt)

    assert kept(store) == [(1, "active")]


# Numbers and history.


def test_every_version_has_a_number_of_its_own_that_stays(store: RegistryStore) -> None:
    for schema in (ONE, TWO):
        store.register(Proposal(TYPE, schema), by="ana")
    store.register(Proposal("orders.order.paid", ONE), by="ana")
    numbers = {(each.event_type, each.version): each.id for each in store.load()[1]}

    changed, _ = store.register(Proposal(TYPE, TWO, status="deprecated"), by="ana")

    assert len(set(numbers.values())) == 3
    assert all(number > 0 for number in numbers.values())
    assert changed.id == numbers[TYPE, 2]
    assert {(each.event_type, each.version): each.id for each in store.load()[1]} == numbers


def test_the_registry_is_known_as_it_was_at_any_instant(store: RegistryStore) -> None:
    first, _ = store.register(Proposal(TYPE, ONE), by="ana")
    second, _ = store.register(Proposal(TYPE, TWO), by="ana")
    third, _ = store.register(Proposal(TYPE, TWO, status="deprecated"), by="bea")

    assert store.as_of(first.created_at - timedelta(microseconds=1)) == []
    assert store.as_of(first.updated_at) == [first]
    assert store.as_of(second.updated_at) == [first, second]
    assert store.as_of(third.updated_at) == [first, third] == store.load()[1]


def test_a_registration_that_changed_nothing_leaves_no_history() -> None:
    clock = FixedClock(datetime(2026, 3, 1, tzinfo=UTC))
    store = InMemoryRegistryStore(clock)
    first, _ = store.register(Proposal(TYPE, ONE), by="ana")
    clock.move(timedelta(hours=1))

    store.register(Proposal(TYPE, ONE), by="bea")

    assert store.as_of(clock.now()) == [first]
