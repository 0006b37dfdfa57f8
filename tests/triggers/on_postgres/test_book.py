"""Definitions are kept in every version, change one at a time, and can be asked about the past."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from tests.triggers.on_postgres.support import spec

from penstock.base.errors import NotFound
from penstock.triggers.book.conflict import TriggerConflict
from penstock.triggers.book.on_postgres import TriggerBook


def test_a_trigger_is_read_back_as_it_was_written(book: TriggerBook) -> None:
    wanted = spec(
        predicates=[{"type": "jsonPath", "path": "$.payload.n", "operator": "gt", "value": 1.10}],
        parameterTemplate={"b": "{{ event.id }}", "a": [1, 2.50, None]},
        metadata={"team": "data"},
    )

    made = book.create(wanted, workflow_slug="sync", by="ann", tenant_id="acme")

    assert made.version == 1
    assert made.created_by == made.updated_by == "ann"
    assert book.get("acme", made.id) == made
    assert made.spec.wire() == wanted.wire()


def test_a_trigger_and_its_first_version_are_made_at_one_instant(
    book: TriggerBook, database: str
) -> None:
    # Two readings of the clock differ in every tenth or so: with a hundred, that would show.
    for _ in range(100):
        made = book.create(spec(), workflow_slug="sync", by="ann")
        assert made.updated_at == made.created_at
        book.delete("default", made.id, by="bob")

    with psycopg.connect(database) as connection:
        gone = connection.execute("SELECT updated_at, deleted_at FROM workflow_event_triggers")
        assert all(updated_at == deleted_at for updated_at, deleted_at in gone)


def test_a_change_makes_a_version_and_the_old_one_is_kept(book: TriggerBook) -> None:
    made = book.create(spec(), workflow_slug="sync", by="ann")

    changed = book.change("default", made.id, spec(maxConcurrency=2), by="bob")

    assert (changed.version, changed.updated_by, changed.created_by) == (2, "bob", "ann")
    assert book.versions("default", made.id) == [made, changed]


def test_a_change_that_changes_nothing_makes_no_version(book: TriggerBook) -> None:
    made = book.create(spec(), workflow_slug="sync", by="ann")

    assert book.change("default", made.id, spec(), by="bob") == made
    assert len(book.versions("default", made.id)) == 1


def test_a_change_made_for_an_older_version_is_refused(book: TriggerBook) -> None:
    made = book.create(spec(), workflow_slug="sync", by="ann")
    book.change("default", made.id, spec(maxConcurrency=2), by="bob", expected_version=1)

    with pytest.raises(TriggerConflict, match="expected version 1 of the trigger, found version 2"):
        book.change("default", made.id, spec(maxConcurrency=3), by="ann", expected_version=1)
    with pytest.raises(TriggerConflict):
        book.delete("default", made.id, by="ann", expected_version=1)


def test_eight_people_who_change_one_version_at_once_make_one_version(book: TriggerBook) -> None:
    made = book.create(spec(), workflow_slug="sync", by="ann")

    def change(count: int) -> bool:
        try:
            book.change(
                "default", made.id, spec(maxConcurrency=count), by="bob", expected_version=1
            )
        except TriggerConflict:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(change, range(1, 9))) == 1
    assert len(book.versions("default", made.id)) == 2


def test_a_deleted_trigger_is_gone_but_its_versions_stay(book: TriggerBook) -> None:
    made = book.create(spec(), workflow_slug="sync", by="ann")

    book.delete("default", made.id, by="bob")

    assert book.list("default") == []
    assert book.versions("default", made.id) == [made]
    with pytest.raises(NotFound):
        book.get("default", made.id)
    with pytest.raises(NotFound):
        book.change("default", made.id, spec(maxConcurrency=2), by="bob")


def test_a_trigger_of_another_tenant_does_not_exist(book: TriggerBook) -> None:
    made = book.create(spec(), workflow_slug="sync", by="ann", tenant_id="acme")

    for ask in (
        lambda: book.get("other", made.id),
        lambda: book.versions("other", made.id),
        lambda: book.change("other", made.id, spec(maxConcurrency=2), by="eve"),
        lambda: book.delete("other", made.id, by="eve"),
    ):
        with pytest.raises(NotFound):
            ask()
    assert book.list("other") == []
    assert book.get("acme", made.id) == made


def test_the_list_is_filtered_by_workflow_status_type_and_source(book: TriggerBook) -> None:
    one = book.create(spec(), workflow_slug="sync", by="ann")
    two = book.create(
        spec(eventType="metastore.record.*", eventSource="metastore.api", status="shadow"),
        workflow_slug="audit", by="ann",
    )  # fmt: skip

    assert book.list("default") == [one, two]
    assert book.list("default", workflow_slug="audit") == [two]
    assert book.list("default", status="active") == [one]
    assert book.list("default", event_type="metastore.record.*") == [two]
    assert book.list("default", event_source="metastore.api", status="shadow") == [two]


def test_definitions_can_be_asked_as_of_an_instant(book: TriggerBook) -> None:
    first = book.create(spec(), workflow_slug="sync", by="ann")
    second = book.change("default", first.id, spec(maxConcurrency=2), by="bob")
    moment = timedelta(microseconds=1)
    book.delete("default", first.id, by="bob")

    assert book.as_of("default", first.created_at - moment) == []
    assert book.as_of("default", first.created_at) == [first]
    assert book.as_of("default", second.updated_at - moment) == [first]
    assert book.as_of("default", second.updated_at, trigger_id=first.id) == [second]
    assert book.as_of("default", second.updated_at + timedelta(days=1)) == []


def test_a_change_wakes_the_worker(book: TriggerBook, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as listener:
        listener.execute("LISTEN penstock_triggers")

        book.create(spec(), workflow_slug="sync", by="ann")

        assert len(list(listener.notifies(timeout=5, stop_after=1))) == 1
