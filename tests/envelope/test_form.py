"""The form of a value is the same before it is stored and after it is read back."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.base.errors import NotInProfile
from penstock.envelope.codec import canonical, decode, encode, load_stored
from penstock.envelope.envelope import JsonValue
from penstock.envelope.form import json_form, json_forms

numbers = st.one_of(
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False, places=25).filter(lambda d: abs(d) < 10**12),
    st.builds(
        lambda digits, exponent: Decimal(digits).scaleb(exponent),
        st.integers(-(10**30), 10**30),
        st.integers(-60, 60),
    ),
)
texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=("Cs",)), max_size=12)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def connection(server: object, template: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(server.url(template), autocommit=True) as opened:  # type: ignore[attr-defined]
        yield opened


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(values)
def test_the_form_of_a_value_survives_jsonb(
    connection: psycopg.Connection[tuple[object, ...]], value: JsonValue
) -> None:
    try:
        value = decode(encode(value))
    except NotInProfile:
        return  # outside the profile, so never stored
    row = connection.execute("SELECT (%b::text)::jsonb::text", (encode(value).decode(),)).fetchone()
    assert row is not None

    assert json_form(load_stored(str(row[0]))) == json_form(value)


@pytest.mark.parametrize(
    "literal",
    ["1e16", "1e22", "1E+5", "-0.0", "-0", "1e-7", "123456789012345678e3", "0.1", "1.10", "1e300",
     "1.234567890123456789e30", "9223372036854775807", "1.0", "100000.0", "5e-324", "2.5e15"],
)  # fmt: skip
def test_the_form_of_a_literal_survives_jsonb(
    connection: psycopg.Connection[tuple[object, ...]], literal: str
) -> None:
    try:
        value = decode(b'{"x":' + literal.encode() + b"}")
    except NotInProfile:
        return
    row = connection.execute("SELECT (%b::text)::jsonb::text", (encode(value).decode(),)).fetchone()
    assert row is not None

    assert json_form(load_stored(str(row[0]))) == json_form(value)


def test_letters_of_an_id_are_no_exponent() -> None:
    values: list[JsonValue] = [
        {"id": "01a1e398-6710-7000-93e1-3e87aa22a402", "of": ["5e3", "x 1e5"], "1e9": True},
        {"b": 0.5, "a": "7e7"},
    ]

    assert json_forms(values) == [canonical(value) for value in values]
    assert json_forms([*values, {"n": 1e16}]) == [json_form(v) for v in [*values, {"n": 1e16}]]
    assert json_form({"n": 1e16}) == b'{"n":10000000000000000}'
    assert json_form(1e16) == b"10000000000000000"
