"""Hold PostgreSQL to the same reading of a glob as Python, and to using the index for it."""

from __future__ import annotations

import itertools

import psycopg

from penstock.envelope.names import glob_regex, matches_glob

PARTS = ("a", "*", "**", "b*", "*c", "a+", "x(y", "é*", r"b\d*", "[a]*")
NAMES = ("a", "a.b", "a.bc.c", "a.b.c.d", "bx.a+", "b.xc", "x(y.a", "éa.b", r"b\d1.a", "[a]z.a")


def test_postgresql_reads_a_glob_as_python_does(database: str) -> None:
    patterns = [
        ".".join(parts) for count in (1, 2, 3) for parts in itertools.product(PARTS, repeat=count)
    ]
    cases = [(pattern, name) for pattern in patterns for name in NAMES]

    with psycopg.connect(database) as connection:
        found = connection.execute(
            "SELECT name ~ regex FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY"
            " AS x(name, regex, n) ORDER BY n",
            ([name for _, name in cases], [glob_regex(pattern) for pattern, _ in cases]),
        ).fetchall()

    expected = [matches_glob(pattern, name) for pattern, name in cases]
    assert [row[0] for row in found] == expected
    assert True in expected


def test_a_glob_with_a_fixed_beginning_is_a_range_of_the_index(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute('CREATE TEMP TABLE names (type text COLLATE "C" PRIMARY KEY)')
        connection.execute("SET enable_seqscan = off")
        plan = connection.execute(
            "EXPLAIN SELECT FROM names WHERE type ~ %s", (glob_regex("metastore.record.*"),)
        ).fetchall()

    assert any("type >= 'metastore.record.'" in row[0] for row in plan), plan
