"""Keep the keys of subjects in PostgreSQL, wrapped, and destroy them when they are to be erased.

A server process reaches them through its pool, an executor over a connection of its own. The root
key is compared with the one that the database was first used with before anything is encrypted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from penstock.base.errors import SetupIncomplete, StoreUnavailable
from penstock.base.on_postgres import Pool, answering, become
from penstock.sql import query
from penstock.store.privacy.cipher import KeyPlace
from penstock.store.privacy.erase import Destroyed, mentions
from penstock.store.privacy.keys import Standing, Subject

Connection = psycopg.Connection[TupleRow]
Connect: TypeAlias = Callable[[], AbstractContextManager[Connection]]


class OwnConnection:
    """One connection for a process that has no pool; opened when needed, again when it broke."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: Connection | None = None

    @contextmanager
    def __call__(self) -> Iterator[Connection]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._dsn, autocommit=True, connect_timeout=5)
            become(self._connection, "penstock_ingest")
        try:
            yield self._connection
        except psycopg.Error:
            self._connection.close()
            raise


class PostgresSubjectKeys:
    """The keys of subjects; `fingerprint` tells which root key wraps them."""

    def __init__(self, connect: Connect, fingerprint: bytes) -> None:
        self._connect = connect
        self._fingerprint = fingerprint
        self._is_ours = False

    def standings(self, subjects: Collection[Subject]) -> dict[Subject, Standing]:
        """What there is of each of these; one that was never seen is left out."""
        bound = {"tenants": [s[0] for s in subjects], "subjects": [s[1] for s in subjects]}
        with self._open() as connection:
            rows = connection.execute(query("privacy", "standings"), bound).fetchall()
        return {(row[0], row[1]): Standing(*row[2:]) for row in rows}

    def create(self, wrapped: Mapping[KeyPlace, bytes]) -> None:
        """Keep new keys; one whose place is taken meanwhile is not kept."""
        # In one order everywhere, so that two lots never wait for each other in a circle.
        places = sorted(wrapped, key=lambda place: (place.tenant_id, place.subject))
        bound = {**_places(places), "wrapped": [wrapped[place] for place in places]}
        with self._open() as connection:
            connection.execute(query("privacy", "create"), bound)

    def find(self, places: Collection[KeyPlace]) -> dict[KeyPlace, bytes]:
        """The wrapped keys that are still there."""
        with self._open() as connection:
            rows = connection.execute(query("privacy", "find"), _places(places)).fetchall()
        return {KeyPlace(*row[:3]): row[3] for row in rows}

    @contextmanager
    def _open(self) -> Iterator[Connection]:
        try:
            with answering(), self._connect() as connection:
                if not self._is_ours:
                    self._claim(connection)
                yield connection
        except psycopg.Error as error:
            raise StoreUnavailable(f"the keys of subjects cannot be had: {error}") from error

    def _claim(self, connection: Connection) -> None:
        found = connection.execute(query("privacy", "root")).fetchone()
        if found is None:
            connection.execute(query("privacy", "claim_root"), {"fingerprint": self._fingerprint})
            found = connection.execute(query("privacy", "root")).fetchone()
        if found is None or found[0] != self._fingerprint:
            raise SetupIncomplete(
                "expected the root key that this database was first used with, found another",
                remedy="Put back the privacy.key that belongs to this database.",
            )
        self._is_ours = True


class PostgresErasable:
    """Destroys keys and letters; the owner of the tables may."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def destroy(self, subject: Subject) -> Destroyed:
        """Take the subject's key away for good, and remember when."""
        bound = {"tenant": subject[0], "subject": subject[1]}
        with answering(), self._pool.connection() as connection, connection.transaction():
            # A key may be made between the two; then it is destroyed, too.
            for name in ("destroy", "bury", "destroy"):
                rows = connection.execute(query("privacy", name), bound).fetchall()
                if rows:
                    return Destroyed(len(rows) if name == "destroy" else 0, rows[0][0])
        raise StoreUnavailable("the key of the subject changes all the time")

    def blank_letters(self, tenant_id: str, text: str) -> int:
        """Blank every dead letter that mentions the text; how many there were."""
        blanked, after = 0, ""
        while True:
            with answering(), self._pool.connection() as connection:
                bound = {"tenant": tenant_id, "after": after}
                rows = connection.execute(query("privacy", "letters"), bound).fetchall()
                ids = [letter_id for letter_id, raw in rows if mentions(raw, text)]
                if ids:
                    connection.execute(query("privacy", "blank_letters"), {"ids": ids})
            if not rows:
                return blanked
            blanked += len(ids)
            after = rows[-1][0]

    def sweep(self) -> None:
        """Write the tables anew, so that old versions of rows do not linger."""
        with answering(), self._pool.connection() as connection:
            connection.execute(query("privacy", "soon"))
            try:
                for table in ("subject_keys", "dead_letters"):
                    _sweep(connection, table)
            finally:
                connection.execute(query("privacy", "patiently"))


def _sweep(connection: Connection, table: str) -> None:
    name = sql.Identifier(table)
    try:
        connection.execute(sql.SQL(query("privacy", "rewrite")).format(table=name))
    except psycopg.errors.LockNotAvailable:
        connection.execute(sql.SQL(query("privacy", "sweep")).format(table=name))


def _places(places: Collection[KeyPlace]) -> dict[str, object]:
    return {
        "tenants": [place.tenant_id for place in places],
        "subjects": [place.subject for place in places],
        "numbers": [place.number for place in places],
    }
