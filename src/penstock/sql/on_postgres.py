"""Bring a database to the newest schema: each migration once, in order, never changed afterwards.

    migrate(url)   under an advisory lock, one transaction per migration, checksums compared

A migration that was applied and then edited is refused: the database and the code would disagree
about what happened.
"""

from __future__ import annotations

import hashlib

import psycopg

from penstock.base.errors import SetupIncomplete
from penstock.sql import migrations, query

_LOCK = 0x70656E73  # "pens"


def migrate(url: str) -> list[str]:
    """Apply what is missing and return the names of what was applied."""
    applied = []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(query("migrate", "lock"), {"key": _LOCK})
        connection.execute(query("migrate", "create_table"))
        known: dict[int, str] = dict(connection.execute(query("migrate", "applied")).fetchall())
        for number, name, text in migrations():
            checksum = hashlib.sha256(text.encode()).hexdigest()
            if number not in known:
                with connection.transaction():
                    connection.execute(text.encode())
                    connection.execute(
                        query("migrate", "record"),
                        {"number": number, "name": name, "checksum": checksum},
                    )
                applied.append(name)
            elif known[number] != checksum:
                raise SetupIncomplete(
                    f"migration {number:04d} {name} was changed after it was applied",
                    remedy="Restore the migration file, and put the change into a new one.",
                )
        newest = max(known, default=0)
        if newest > migrations()[-1][0]:
            raise SetupIncomplete(
                f"the database is at migration {newest}, this program knows {migrations()[-1][0]}",
                remedy="Start the Penstock version that last used this database, or a newer one.",
            )
    return applied
