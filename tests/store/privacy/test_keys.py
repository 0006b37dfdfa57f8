"""The keys on PostgreSQL do what those in memory do, and only for the root they were made by."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from tests.store.privacy.support import REGISTRY, ROOT, accepted, judged, stored, vault

from penstock.base.errors import SetupIncomplete, StoreUnavailable
from penstock.base.on_postgres import Pool, open_pool
from penstock.store.privacy.cipher import KeyPlace, RootKey
from penstock.store.privacy.hide import Hiding
from penstock.store.privacy.in_memory import KeysInMemory
from penstock.store.privacy.keys import SubjectKeys
from penstock.store.privacy.on_disk import find_root, key_file, open_root
from penstock.store.privacy.on_postgres import (
    OwnConnection,
    PostgresErasable,
    PostgresSubjectKeys,
)
from penstock.store.privacy.show import reveal

ALICE, BOB = ("default", "alice"), ("other", "bob")
FIRST = KeyPlace(*ALICE, 1)
Erase = Callable[[tuple[str, str]], int]


@pytest.fixture
def pool(database: str) -> Iterator[Pool]:
    with open_pool(database, "owner", size_max=4) as opened:
        yield opened


@pytest.fixture(params=["in memory", "on postgres"])
def kept(request: pytest.FixtureRequest) -> tuple[SubjectKeys, Erase]:
    if request.param == "in memory":
        memory = KeysInMemory()
        return memory, lambda subject: memory.erase(subject, datetime.now(UTC))
    pool = request.getfixturevalue("pool")
    keys = PostgresSubjectKeys(pool.connection, ROOT.fingerprint)
    return keys, lambda subject: PostgresErasable(pool).destroy(subject).keys


def test_a_subject_that_was_never_seen_has_nothing(kept: tuple[SubjectKeys, Erase]) -> None:
    keys, _ = kept

    assert keys.standings([ALICE]) == {}
    assert keys.find([FIRST]) == {}


def test_the_first_key_of_a_place_is_kept(kept: tuple[SubjectKeys, Erase]) -> None:
    keys, _ = kept
    keys.create({FIRST: b"one", KeyPlace(*BOB, 1): b"two"})
    keys.create({FIRST: b"three"})

    found = keys.standings([ALICE, BOB])
    assert (found[ALICE].newest, found[ALICE].wrapped, found[ALICE].erased_at) == (1, b"one", None)
    assert keys.find([FIRST, KeyPlace(*ALICE, 2)]) == {FIRST: b"one"}


def test_an_erased_key_is_gone_and_leaves_when(kept: tuple[SubjectKeys, Erase]) -> None:
    keys, erase = kept
    keys.create({FIRST: b"one", KeyPlace(*BOB, 1): b"two"})
    before = datetime.now(UTC) - timedelta(minutes=1)

    assert erase(ALICE) == 1

    found = keys.standings([ALICE, BOB])
    assert (found[ALICE].newest, found[ALICE].wrapped) == (1, None)
    assert found[ALICE].erased_at is not None
    assert found[ALICE].erased_at > before
    assert found[BOB].wrapped == b"two"
    assert keys.find([FIRST]) == {}


def test_whoever_comes_back_gets_the_next_number(kept: tuple[SubjectKeys, Erase]) -> None:
    keys, erase = kept
    keys.create({FIRST: b"one"})
    erase(ALICE)
    keys.create({FIRST: b"again"})
    keys.create({KeyPlace(*ALICE, 2): b"new"})

    found = keys.standings([ALICE])[ALICE]
    assert (found.newest, found.wrapped) == (2, b"new")
    assert found.erased_at is not None
    assert erase(ALICE) == 1


def test_an_erasure_is_remembered_though_there_was_nothing(
    kept: tuple[SubjectKeys, Erase],
) -> None:
    keys, erase = kept

    assert erase(ALICE) == 0
    first = keys.standings([ALICE])[ALICE].erased_at
    assert erase(ALICE) == 0
    again = keys.standings([ALICE])[ALICE].erased_at

    assert first is not None
    assert again is not None
    assert again > first, "what comes late is measured by the last erasure"


def test_another_root_key_is_refused_before_it_makes_a_mess(pool: Pool) -> None:
    PostgresSubjectKeys(pool.connection, ROOT.fingerprint).standings([ALICE])
    other = PostgresSubjectKeys(pool.connection, RootKey(b"o" * 32).fingerprint)

    with pytest.raises(SetupIncomplete, match="expected the root key that this database"):
        other.create({FIRST: b"x"})


def test_processes_that_meet_the_same_subjects_at_once_agree_on_their_keys(
    database: str, pool: Pool
) -> None:
    events = [
        judged(f"evt-{n}", payload={"customerId": f"c{n % 7}", "email": "e"}) for n in range(40)
    ]
    found: list[list[object]] = []

    def work() -> None:
        keys = PostgresSubjectKeys(OwnConnection(database), ROOT.fingerprint)
        hidden = Hiding(vault(keys)).hide(events, REGISTRY)
        found.append([stored(accepted(item)) for item in hidden])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    keys = PostgresSubjectKeys(pool.connection, ROOT.fingerprint)
    for each in found:
        shown = reveal(each, REGISTRY, vault(keys))  # type: ignore[arg-type]
        assert {e.envelope.payload["email"] for e in shown} == {"e"}  # type: ignore[index,call-overload]
    assert len(found) == 4
    with psycopg.connect(database) as connection:
        count = connection.execute("SELECT count(*), max(number) FROM subject_keys").fetchone()
    assert count == (7, 1)


def test_a_connection_that_broke_is_opened_again(database: str) -> None:
    own = OwnConnection(database)
    keys = PostgresSubjectKeys(own, ROOT.fingerprint)
    keys.create({FIRST: b"one"})
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    with pytest.raises(StoreUnavailable):
        keys.find([FIRST])
    assert keys.find([FIRST]) == {FIRST: b"one"}


def test_no_database_means_no_keys_and_no_plaintext() -> None:
    keys = PostgresSubjectKeys(OwnConnection("postgresql:///none?host=/nowhere"), ROOT.fingerprint)

    with pytest.raises(StoreUnavailable):
        Hiding(vault(keys)).hide([judged()], REGISTRY)


def test_a_key_made_while_its_subject_is_erased_is_destroyed_too(database: str, pool: Pool) -> None:
    with psycopg.connect(database) as connection:
        connection.execute(
            "INSERT INTO subject_keys VALUES ('default', 'alice', 1, NULL, now(), now()),"
            " ('default', 'alice', 2, 'live', now(), NULL)"
        )

    assert PostgresErasable(pool).destroy(ALICE).keys == 1
    keys = PostgresSubjectKeys(pool.connection, ROOT.fingerprint)
    assert keys.standings([ALICE])[ALICE].wrapped is None


def test_the_root_key_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    path = key_file(tmp_path)
    with pytest.raises(SetupIncomplete, match="found none"):
        find_root(path)

    made = open_root(path)

    assert find_root(path).fingerprint == open_root(path).fingerprint == made.fingerprint
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "abc", "zz" * 32, "00" * 31])
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, text: str) -> None:
    key_file(tmp_path).write_text(text)

    with pytest.raises(SetupIncomplete, match="expected a root key"):
        open_root(key_file(tmp_path))
