"""The book keeps the registry current, declares types once, and outlives its store's absence."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from penstock.base.clock import FixedClock
from penstock.base.errors import StoreUnavailable
from penstock.base.on_postgres import EmbeddedPostgres, open_pool
from penstock.envelope.envelope import Severity
from penstock.registry.book import RegistryBook
from penstock.registry.declare import EventType, Payload, Vocabulary
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.on_postgres import PostgresRegistryStore
from penstock.registry.proposal import Proposal
from penstock.registry.schema import SchemaVersion
from penstock.registry.upcast import Upcasted

AT = datetime(2026, 3, 1, tzinfo=UTC)


class Placed(Payload):
    """An order was placed."""

    id: str


class PlacedToo(Payload):
    """An order was placed."""

    id: int


SHOP = Vocabulary("shop", (EventType("order.placed", Placed),))


class Away(InMemoryRegistryStore):
    """A store that can be out of reach."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.asked = 0

    def load(self) -> tuple[int, list[SchemaVersion]]:
        if self.away:
            raise StoreUnavailable("away")
        return super().load()

    def revision(self) -> int:
        self.asked += 1
        if self.away:
            raise StoreUnavailable("away")
        return super().revision()


def test_what_is_registered_is_known_at_once() -> None:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    assert not book.current().knows("order.placed")

    book.register(Proposal("order.placed", {}), by="ana")

    assert book.current().knows("order.placed")


def test_what_another_process_registers_is_known_after_a_refresh() -> None:
    store = InMemoryRegistryStore()
    here, there = RegistryBook(store, mode="strict"), RegistryBook(store, mode="strict")
    here.current()

    there.register(Proposal("order.placed", {}), by="ana")

    assert not here.current().knows("order.placed")
    assert here.refresh().knows("order.placed")
    assert here.current().knows("order.placed")


def test_a_refresh_without_a_change_gives_the_same_registry() -> None:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.register(Proposal("order.placed", {}), by="ana")

    assert book.refresh() is book.refresh()


def test_the_mode_is_handed_on() -> None:
    assert RegistryBook(InMemoryRegistryStore(), mode="open").current().mode == "open"


def test_a_restart_never_adds_versions() -> None:
    store = InMemoryRegistryStore()
    for _ in range(3):
        assert RegistryBook(store, mode="strict").declare((SHOP,)) == ()

    assert [each.version for each in store.load()[1]] == [1]
    assert store.revision() == 1


def test_a_declared_type_says_who_declared_it() -> None:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare((SHOP,))

    found = book.current().find("order.placed", None)
    assert found is not None
    assert found.created_by == "system"
    assert found.metadata["vocabulary"] == "shop"


def test_a_changed_word_changes_metadata_and_no_version() -> None:
    store = InMemoryRegistryStore()
    RegistryBook(store, mode="strict").declare((SHOP,))
    louder = EventType("order.placed", Placed, severity=Severity.WARNING)
    book = RegistryBook(store, mode="strict")

    book.declare((Vocabulary("shop", (louder,)),))

    (found,) = book.current().versions
    assert (found.version, found.metadata["severity"]) == (1, "warning")


def test_a_type_that_an_operator_deprecated_stays_deprecated() -> None:
    store = InMemoryRegistryStore()
    book = RegistryBook(store, mode="strict")
    book.declare((SHOP,))
    (found,) = book.current().versions
    book.register(Proposal("order.placed", found.schema, status="deprecated"), by="ana")

    book.declare((SHOP,))

    assert [each.status for each in book.current().versions] == ["deprecated"]


def test_a_published_schema_wins_over_a_declaration_that_differs() -> None:
    store = InMemoryRegistryStore()
    RegistryBook(store, mode="strict").declare((SHOP,))
    before = store.load()
    other = Vocabulary(
        "shop", (EventType("order.placed", PlacedToo), EventType("order.paid", Placed))
    )
    book = RegistryBook(store, mode="strict")

    (conflict,) = book.declare((other,))

    assert "order.placed version 1" in conflict.detail
    assert [each for each in store.load()[1] if each.event_type == "order.placed"] == before[1]
    assert book.current().knows("order.paid")


class PlacedWithTotal(Payload):
    """An order was placed."""

    id: str
    total: int | None = None


def test_a_new_version_in_code_is_added_beside_the_old_one() -> None:
    store = InMemoryRegistryStore()
    RegistryBook(store, mode="strict").declare((SHOP,))
    book = RegistryBook(store, mode="strict")

    book.declare((Vocabulary("shop", (EventType("order.placed", PlacedWithTotal, version=2),)),))

    found = book.current().find("order.placed", None)
    assert found is not None
    assert found.version == 2
    assert len(book.current().versions) == 2


def test_a_new_version_in_code_that_breaks_the_old_one_is_not_registered() -> None:
    store = InMemoryRegistryStore()
    RegistryBook(store, mode="strict").declare((SHOP,))
    book = RegistryBook(store, mode="strict")

    (conflict,) = book.declare(
        (Vocabulary("shop", (EventType("order.placed", PlacedToo, version=2),)),)
    )

    assert conflict.code == "schema_breaking"
    assert [each.version for each in book.current().versions] == [1]


def test_an_upcaster_beside_the_type_lets_a_breaking_version_in_once_and_for_all() -> None:
    store = InMemoryRegistryStore()
    RegistryBook(store, mode="strict").declare((SHOP,))
    upcasts = {1: lambda payload: {**payload, "id": len(str(payload["id"]))}}
    newer = Vocabulary("shop", (EventType("order.placed", PlacedToo, version=2, upcasts=upcasts),))
    book = RegistryBook(store, mode="strict")

    assert book.declare((newer,)) == ()
    revision = store.revision()
    assert book.declare((newer,)) == ()

    assert store.revision() == revision
    found = book.current().find("order.placed", None)
    assert found is not None
    assert found.metadata["override"] == {
        "reason": "upcasters beside the type",
        "by": "system",
        "breaks": ["/id was string, is now integer"],
    }
    assert book.current().upcast("order.placed", 1, {"id": "abc"}) == Upcasted({"id": 3}, 2)


def test_what_code_declares_can_be_asked_for_by_name() -> None:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare((SHOP,))

    assert book.declaration("order.placed") is SHOP.events[0]
    assert book.declaration("order.gone") is None


def test_the_book_opens_at_any_instant() -> None:
    clock = FixedClock(AT)
    book = RegistryBook(InMemoryRegistryStore(clock), mode="strict")
    book.declare((SHOP,))
    clock.move(timedelta(hours=1))
    book.register(Proposal("order.paid", {}), by="ana")

    assert book.as_of(AT).types() == ["order.placed"]
    assert book.as_of(clock.now()).types() == ["order.paid", "order.placed"]


def test_the_cached_registry_answers_while_the_store_is_away() -> None:
    store = Away()
    book = RegistryBook(store, mode="strict")
    book.declare((SHOP,))

    store.away = True

    assert book.refresh().knows("order.placed")
    assert book.current().knows("order.placed")


def test_a_book_that_never_saw_its_store_says_so() -> None:
    store = Away()
    store.away = True
    book = RegistryBook(store, mode="strict")

    with pytest.raises(StoreUnavailable):
        book.refresh()
    with pytest.raises(StoreUnavailable):
        book.current()


def test_a_store_that_is_away_is_asked_once_a_second() -> None:
    store, clock = Away(), FixedClock(AT)
    book = RegistryBook(store, mode="strict", clock=clock)
    book.current()
    store.away = True

    for _ in range(10):
        book.refresh()
    assert store.asked == 1

    clock.move(timedelta(seconds=1))
    book.refresh()
    assert store.asked == 2


def test_a_store_that_is_back_is_heard() -> None:
    store, clock = Away(), FixedClock(AT)
    book = RegistryBook(store, mode="strict", clock=clock)
    book.current()
    store.away = True
    book.refresh()
    store.register(Proposal("order.placed", {}), by="ana")
    store.away = False

    clock.move(timedelta(seconds=2))

    assert book.refresh().knows("order.placed")


def test_a_slow_question_holds_nobody_else_up() -> None:
    asking, answer = threading.Event(), threading.Event()

    class Slow(InMemoryRegistryStore):
        def revision(self) -> int:
            asking.set()
            answer.wait(10)
            return super().revision()

    book = RegistryBook(Slow(), mode="strict")
    known = book.current()
    first = threading.Thread(target=book.refresh)
    first.start()
    asking.wait(10)

    assert book.refresh() is known

    answer.set()
    first.join()


def test_whoever_comes_while_another_asks_knows_what_was_registered_before_it_came() -> None:
    asking, answer = threading.Event(), threading.Event()

    class Slow(InMemoryRegistryStore):
        def revision(self) -> int:
            found = super().revision()
            if not asking.is_set():
                asking.set()
                answer.wait(10)
            return found

    store = Slow()
    book = RegistryBook(store, mode="strict")
    book.current()
    first = threading.Thread(target=book.refresh)
    first.start()
    asking.wait(10)
    store.register(Proposal("order.placed", {}), by="ana")
    soon = threading.Timer(0.05, answer.set)
    soon.start()

    assert book.refresh().knows("order.placed")

    first.join()
    soon.join()


def test_a_database_that_is_away_is_a_store_that_is_away(
    database: str, server: EmbeddedPostgres
) -> None:
    pool = open_pool(database, "owner", size_max=2, wait_s=0.5)
    clock = FixedClock(AT)
    book = RegistryBook(PostgresRegistryStore(pool), mode="strict", clock=clock)
    book.declare((SHOP,))
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    admin = psycopg.connect(server.url("postgres"), autocommit=True)
    admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
    admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
    )

    assert book.refresh().knows("order.placed")
    with pytest.raises(StoreUnavailable):
        book.register(Proposal("order.paid", {}), by="ana")

    admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    admin.close()
    pool.close()


@pytest.mark.parametrize("role", ["penstock_ingest", "penstock_reader"])
def test_lesser_roles_may_read_the_registry(database: str, role: str) -> None:
    owner = open_pool(database, "owner", size_max=1)
    RegistryBook(PostgresRegistryStore(owner), mode="strict").declare((SHOP,))
    pool = open_pool(database, role, size_max=1)  # type: ignore[arg-type]

    assert RegistryBook(PostgresRegistryStore(pool), mode="strict").current().knows("order.placed")

    owner.close()
    pool.close()
