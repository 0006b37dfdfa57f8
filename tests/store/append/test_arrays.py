"""PostgreSQL reads the arrays that we write, whatever is in them."""

from __future__ import annotations

from typing import Any

import psycopg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.store.append.arrays import (
    BYTEA,
    INT2,
    INT4,
    INT8,
    literal,
    pack_bytes,
    pack_integers,
)

texts = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=8)


def read_back(database: str, kind: str, written: bytes | None, form: int) -> Any:
    with psycopg.connect(database, autocommit=True) as connection:
        result = connection.pgconn.exec_params(
            f"SELECT to_jsonb($1::{kind})::text".encode(),
            [written],
            param_formats=[form],  # type: ignore[list-item]
        )
        assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message
        found = result.get_value(0, 0)
        return None if found is None else psycopg.types.json.json.loads(found)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.none() | texts, max_size=6), st.lists(texts, min_size=1, max_size=4))
def test_texts_come_back_as_they_are(
    shared_database: str, items: list[str | None], words: list[str]
) -> None:
    packed = pack_bytes([None if item is None else item.encode() for item in items])

    assert read_back(shared_database, "text[]", packed, 1) == items
    assert read_back(shared_database, "text[]", literal(words), 0) == words


def test_integers_and_bytes_come_back_as_they_are(database: str) -> None:
    for kind, element, most in (
        ("int2", INT2, 2**15),
        ("int4", INT4, 2**31),
        ("int8", INT8, 2**63),
    ):
        items = [0, -1, most - 1, -most]
        assert read_back(database, f"{kind}[]", pack_integers(items, element), 1) == items
        assert read_back(database, f"{kind}[]", pack_integers([], element), 1) == []
    packed = pack_bytes([b"\x00\xff", b""], BYTEA)
    assert read_back(database, "bytea[]", packed, 1) == ["\\x00ff", "\\x"]


def test_no_words_are_no_array() -> None:
    assert literal([]) is None
