"""Hold the fast path of the decoder to the exact one, and both to their promises, by generation."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.base.errors import NotInProfile
from penstock.envelope.codec import canonical, decode, encode, load_stored
from penstock.envelope.envelope import JsonValue
from penstock.envelope.limits import DEPTH_MAX, NODES_MAX, ProfileReason
from penstock.envelope.profile import check_shape, parse

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=12)
integers = st.integers(-(2**63) + 1, 2**63 - 1)
floats = st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda value: value == 0 or abs(value) >= 1e-308
)
scalars = st.none() | st.booleans() | integers | floats | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
decimals = st.builds(
    lambda sign, digits, point, exponent: f"{sign}{digits[:point]}.{digits[point:]}e{exponent}",
    st.sampled_from(("", "-")),
    st.integers(10**19, 10**40 - 1).map(str),
    st.integers(1, 18),
    st.integers(-250, 250),
)
shards = st.sampled_from(
    (
        *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u", b"0000", b"d83d", b"\\ude00"),
        *(b" ", b"\n", b"1", b"-", b".", b"e", b"e-3", b"99999999999999999999", b"null", b"NaN"),
        *(b'"a"', b'"a":1', b"\0", b"\xff", b"\xc3\xa9", b"\xef\xbb\xbf", b"x" * 300),
    )
)


def exact(raw: bytes) -> JsonValue:
    check_shape(raw, depth_max=DEPTH_MAX, nodes_max=NODES_MAX)
    return parse(raw)


def outcome(decoder: Any, raw: bytes) -> tuple[object, ...]:
    """What a decoder does with a message, so that two can be compared, types and all."""
    try:
        return "value", typed(decoder(raw))
    except NotInProfile as refused:
        (refused.detail + refused.pointer).encode()
        return "refused", ProfileReason(refused.reason), refused.pointer


def typed(value: JsonValue) -> object:
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return type(value), str(value)


@given(values)
def test_a_value_within_the_profile_is_the_same_after_writing_and_reading(value: Any) -> None:
    assert typed(decode(encode(value))) == typed(value)


@given(values)
def test_a_value_is_read_alike_however_it_is_spaced_and_escaped(value: Any) -> None:
    plain, pretty = json.dumps(value), json.dumps(value, indent=3, ensure_ascii=False)

    assert typed(decode(plain.encode())) == typed(value)
    assert typed(decode(pretty.encode())) == typed(value)


@given(values)
def test_what_was_stored_is_read_back_equal(value: Any) -> None:
    assert load_stored(encode(value)) == value
    assert load_stored(encode(value).decode()) == value


@given(st.lists(values, min_size=1, max_size=3))
def test_canonical_bytes_do_not_depend_on_the_order_of_keys(items: list[Any]) -> None:
    forward = {str(place): item for place, item in enumerate(items)}
    backward = dict(reversed(forward.items()))

    assert canonical(forward) == canonical(backward)


@given(decimals)
@example("9007199254740993.0e0")
@example("-1.00000000000000000001e20")
@example("1.0000000000000000000000000000000000000e-250")
def test_every_digit_of_a_decimal_literal_is_kept(literal: str) -> None:
    value = decode(literal.encode())

    assert isinstance(value, float | Decimal)
    assert Decimal(repr(value) if isinstance(value, float) else value) == Decimal(literal)
    assert decode(encode(value)) == value
    assert load_stored(encode(value)) == value


@given(decimals)
def test_a_decimal_is_read_back_equal_from_digits_without_an_exponent(literal: str) -> None:
    value = decode(literal.encode())
    written_by_jsonb = f"{Decimal(literal):f}"

    assert load_stored(f"[{written_by_jsonb}]") == [value]


@given(floats)
def test_a_float_is_read_back_as_its_digits_when_they_come_without_an_exponent(
    value: float,
) -> None:
    loaded = load_stored(f"{Decimal(repr(value)):f}")

    assert Decimal(str(loaded)) == Decimal(repr(value))


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_read_or_refused_and_both_paths_agree(raw: bytes) -> None:
    assert outcome(decode, raw) == outcome(exact, raw)


@settings(max_examples=300)
@given(st.lists(shards, max_size=14).map(b"".join))
def test_shards_of_json_are_read_or_refused_and_both_paths_agree(raw: bytes) -> None:
    assert outcome(decode, raw) == outcome(exact, raw)


@settings(max_examples=300)
@given(values, st.data())
def test_mutated_json_is_read_or_refused_and_both_paths_agree(value: Any, data: Any) -> None:
    raw = encode({"a": value, "b": [value]})
    start = data.draw(st.integers(0, len(raw)))
    end = data.draw(st.integers(start, min(len(raw), start + 3)))

    mutated = raw[:start] + data.draw(shards) + raw[end:]

    assert outcome(decode, mutated) == outcome(exact, mutated)


@given(st.text(st.sampled_from("0123456789.eE+-"), max_size=30))
def test_number_like_text_is_read_or_refused_and_both_paths_agree(text: str) -> None:
    raw = text.encode()

    assert outcome(decode, raw) == outcome(exact, raw)
    assert outcome(decode, b'{"a": [%b]}' % raw)[0] in ("value", "refused")


@given(st.floats())
def test_every_float_that_is_written_is_read_or_was_refused(value: float) -> None:
    raw = repr(value).encode()
    inside = math.isfinite(value) and (value == 0 or abs(value) >= 1e-308)

    assert (outcome(decode, raw)[0] == "value") is inside


@given(st.dictionaries(texts, scalars, min_size=1, max_size=4), st.integers(0, 28), st.data())
def test_a_key_repeated_at_any_depth_is_found(
    members: dict[str, Any], depth: int, data: Any
) -> None:
    key = data.draw(st.sampled_from(sorted(members)))
    escaped = "".join(f"\\u{unit:04x}" for unit in utf16(key))
    again = data.draw(st.sampled_from((json.dumps(key), f'"{escaped}"')))

    raw = "[" * depth + json.dumps(members)[:-1] + f",{again}:0}}" + "]" * depth

    assert outcome(decode, raw.encode())[:2] == ("refused", "duplicate_key")


def utf16(text: str) -> list[int]:
    data = text.encode("utf-16-be")
    return [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]


@given(st.integers(1, 40), st.booleans())
def test_depth_is_judged_to_the_level(levels: int, spaced: bool) -> None:
    raw = (b'[{"a": ' if spaced else b'[{"a":') * (levels // 2) + b"["
    closing = b"]" + b"}]" * (levels // 2)
    depth = 2 * (levels // 2) + 1

    assert (outcome(decode, raw + closing)[0] == "value") is (depth <= 32)


@given(st.integers(15_000, 25_000))
@settings(max_examples=25)
def test_values_are_counted_to_the_one(count: int) -> None:
    raw = b"[" + b",".join([b'"a,b"'] * (count - 1)) + b"]"

    assert (outcome(decode, raw)[0] == "value") is (count <= 20_000)
