"""A cursor is good for the tenant and query it was given for, and for nothing else."""

from __future__ import annotations

import base64
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import QueryInvalid
from penstock.store.cursor import read_cursor, write_cursor
from penstock.store.query import EventQuery

KEY = b"k" * 32
DIGEST = EventQuery("acme").digest
CURSOR = write_cursor("acme", 4711, DIGEST, key=KEY)


@given(st.integers(0, 2**63 - 1), st.text(max_size=40))
def test_a_cursor_gives_back_its_position(position: int, tenant: str) -> None:
    text = write_cursor(tenant, position, DIGEST, key=KEY)

    assert read_cursor(text, tenant, DIGEST, key=KEY) == position


@pytest.mark.parametrize("bit", range(24 * 8))
def test_one_flipped_bit_is_noticed(bit: int) -> None:
    token = bytearray(base64.urlsafe_b64decode(CURSOR))
    token[bit // 8] ^= 1 << bit % 8
    forged = base64.urlsafe_b64encode(bytes(token)).decode()

    with pytest.raises(QueryInvalid) as refusal:
        read_cursor(forged, "acme", DIGEST, key=KEY)

    assert refusal.value.parameter == "cursor"


def test_every_other_spelling_of_one_character_is_noticed() -> None:
    for at, own in enumerate(CURSOR):
        for other in set(string.printable + "é\0") - {own}:
            with pytest.raises(QueryInvalid):
                read_cursor(CURSOR[:at] + other + CURSOR[at + 1 :], "acme", DIGEST, key=KEY)


def test_a_cursor_is_of_no_use_to_another_tenant_query_or_key() -> None:
    for tenant, digest, key in [
        ("other", DIGEST, KEY),
        ("acme", EventQuery("acme", types=("a.b",)).digest, KEY),
        ("acme", DIGEST, b"j" * 32),
        ("acme\0" + DIGEST, "", KEY),
    ]:
        with pytest.raises(QueryInvalid, match="changed or is another's"):
            read_cursor(CURSOR, tenant, digest, key=key)


@given(st.text(max_size=60))
def test_other_text_is_refused_and_never_an_error_of_ours(text: str) -> None:
    with pytest.raises(QueryInvalid):
        read_cursor(text, "acme", DIGEST, key=KEY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "=" * 32,
        CURSOR + "=",
        CURSOR + " ",
        " " + CURSOR,
        CURSOR[:-1],
        CURSOR * 2,
        # the cursor of the system the seeds describe
        "eyJ2IjoidjEiLCJvY2N1cnJlZEF0IjoiMjAyNC0xMi0wMVQwMDowMDowMC4wMDBaIiwiaWQiOiJldnQtMDAxIn0",
    ],
)
def test_a_cursor_with_more_or_less_around_it_is_refused(text: str) -> None:
    with pytest.raises(QueryInvalid):
        read_cursor(text, "acme", DIGEST, key=KEY)
