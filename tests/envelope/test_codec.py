"""Say what the codec promises beyond reading: pointers, limits, writing, and what it costs."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from penstock.base.errors import NotInProfile
from penstock.envelope.codec import (
    ProfileReason,
    canonical,
    decode,
    decode_several,
    encode,
    load_stored,
)
from penstock.ingress.verdict import Reason


def refused(raw: bytes, **limits: int) -> NotInProfile:
    with pytest.raises(NotInProfile) as caught:
        decode(raw, **limits)
    return caught.value


def test_the_reasons_are_the_first_nine_of_the_verdict() -> None:
    assert list(ProfileReason) == list(Reason)[:9]
    assert [reason.name for reason in ProfileReason] == [reason.name for reason in Reason][:9]


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (b'{"payload":{"rows":[1,{"n":1e400}]}}', "/payload/rows/1/n"),
        (b'{"a":{"b":1,"b":2}}', "/a/b"),
        (b'{"a/b":{"c~d":"\\u0000"}}', "/a~1b/c~0d"),
        (b'[[0],[0,"\\ud800"]]', "/1/1"),
        (b'{"x":{"a\\u0000":1}}', "/x"),
        (b'{"x":[NaN]}', "/x/0"),
        (b'{"x":{"' + b"k" * 300 + b'":1}}', "/x"),
        (b"18446744073709551615", ""),
        (b'{"n":9223372036854775808}', "/n"),
        (b'{"n":5e-324}', "/n"),
    ],
)
def test_a_refusal_points_at_the_place(raw: bytes, pointer: str) -> None:
    error = refused(raw)

    assert error.pointer == pointer
    assert error.faults[0].pointer == pointer


def test_a_syntax_error_is_placed_by_its_byte_not_its_character() -> None:
    assert "at byte 10 " in refused('{"é":"é"x'.encode() + b"}").detail
    assert "found the end" in refused(b"[1").detail


def test_broken_utf8_is_placed_by_its_byte() -> None:
    assert refused(b'{"a":"\xff"}').detail == "expected UTF-8, found byte 0xff at byte 6"


def test_a_long_literal_is_cut_in_the_detail() -> None:
    assert len(refused(b"9" * 100_000).detail) < 200


def test_limits_can_be_moved_by_the_caller() -> None:
    assert refused(b"[1,2,3]", nodes_max=3).reason == "too_many_nodes"
    assert refused(b"[1,2,3]", bytes_max=6).reason == "too_large"
    assert refused(b"[[[]]]", depth_max=2).reason == "too_deep"
    assert decode(b"[1,2,3]", nodes_max=4, bytes_max=7, depth_max=1) == [1, 2, 3]
    assert decode(b"[" * 34 + b"]" * 34, depth_max=34) is not None


def test_every_depth_beyond_the_limit_is_called_too_deep() -> None:
    depths = [*range(33, 1200), 5_000, 100_000]

    assert {refused(b"[" * depth + b"]" * depth).reason for depth in depths} == {"too_deep"}


def test_a_missing_quote_is_called_malformed_even_where_it_lets_text_look_nested() -> None:
    raw = b'{"a":"x,"b":["' + b"[{" * 40 + b'"]}'

    assert refused(raw).reason == "malformed_json"


def test_a_value_is_counted_once_however_it_looks() -> None:
    raw = b'{"a": "x,[{", "b": [], "c": {}, "d": [1, [2]], "e\\"": "\\\\"}'

    assert decode(raw, nodes_max=9) == decode(raw)
    assert refused(raw, nodes_max=8).reason == "too_many_nodes"


def test_a_number_that_no_float_holds_is_written_with_its_own_digits() -> None:
    raw = b'{"a":0.1000000000000000055511151231257827,"b":[1.20]}'

    assert decode(raw) == {"a": Decimal("0.1000000000000000055511151231257827"), "b": [1.2]}
    assert encode(decode(raw)) == b'{"a":0.1000000000000000055511151231257827,"b":[1.2]}'


def test_canonical_sorts_the_keys_of_every_object() -> None:
    assert canonical({"b": {"d": 1, "c": Decimal("1.50")}, "a": []}) == (
        b'{"a":[],"b":{"c":1.50,"d":1}}'
    )


@dataclass
class Something:
    field: int


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "number_out_of_range"),
        ({"a": [None, float("inf")]}, "number_out_of_range"),
        ({"a": ({"b": -float("inf")},)}, "number_out_of_range"),
        (2**64, "number_out_of_range"),
        ("\ud800", "lone_surrogate"),
        ({1: 2}, "malformed_json"),
        (object(), "malformed_json"),
        (b"bytes", "malformed_json"),
        (datetime(2026, 1, 1, tzinfo=UTC), "malformed_json"),
        (Something(1), "malformed_json"),
        (Decimal("NaN"), "malformed_json"),
    ],
)
def test_what_json_cannot_say_is_refused_and_never_written_as_something_else(
    value: Any, reason: str
) -> None:
    with pytest.raises(NotInProfile) as caught:
        encode(value)

    assert caught.value.reason == reason


def test_a_value_nested_without_end_is_refused() -> None:
    value: Any = []
    for _ in range(300):
        value = [value]

    with pytest.raises(NotInProfile) as caught:
        encode(value)

    assert caught.value.reason == "too_deep"


def test_null_is_written_as_null() -> None:
    assert encode({"a": None, "b": [1.5, None, "null"]}) == b'{"a":null,"b":[1.5,null,"null"]}'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10000000000000000000000", 1e22),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854776000", 9.223372036854776e18),
        ("9223372036854775808.0", Decimal("9223372036854775808.0")),
        ("12345678901234567890.5", Decimal("12345678901234567890.5")),
        ("0.10000000000000000001", Decimal("0.10000000000000000001")),
        ("123456789012345678", 123456789012345678),
        ("1" + "0" * 308, 1e308),
        ("0." + "0" * 307 + "1", 1e-308),
        ('{"a": "12345678901234567890"}', {"a": "12345678901234567890"}),
    ],
)
def test_digits_that_postgresql_wrote_are_read_as_the_value_that_was_sent(
    text: str, value: object
) -> None:
    loaded = load_stored(text)

    assert loaded == value
    assert type(loaded) is type(value)


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 320_000,
        b"[" * 160_000 + b"]" * 160_000,
        b"[" + b"[]," * 100_000 + b"0]",
        b'"' + b'\\"' * 150_000,
        b'"' + b"\\u0000" * 50_000 + b'"',
        b"[" + b"1e400," * 50_000 + b"1]",
        b"9" * 320_000,
        b"1e" + b"9" * 320_000,
        b"0." + b"0" * 319_000 + b"1",
        b"{" + b",".join(b'"%x":0' % i for i in range(19_000)) + b"}",
        b'{"a":1,' * 45_000,
        b"\\" * 320_000,
        b'"' * 320_000,
        b" " * 320_000,
        b"[" + b"1.10," * 19_000 + b"1]",
        b"[" + b'"\\u00e9",' * 19_000 + b"1]",
    ],
    ids=range(16),
)
def test_no_message_takes_more_than_a_tenth_of_a_second(raw: bytes) -> None:
    assert min(cpu_seconds(raw) for _ in range(3)) < 0.1


def cpu_seconds(raw: bytes) -> float:
    started = time.process_time()
    with contextlib.suppress(NotInProfile):
        decode(raw)
    return time.process_time() - started


@pytest.mark.parametrize(
    "plain",
    [
        b'{"id":"01a1e398-6710-7000-935e-3087aa22a402"}',
        b'{"id":"01a1e39e-3110-7000-935e-3007aa22a402","n":[1,2.5,-3]}',
        b'{"id":"5e-310"}',
        b'{"5e-310":1}',
        b'{"n":1e-30}',
    ],
)
def test_ids_that_look_like_tiny_numbers_are_read_with_the_others(plain: bytes) -> None:
    assert decode_several([plain, b'{"a":1}']) == [decode(plain), {"a": 1}]


@pytest.mark.parametrize(
    "literal", [b"5e-324", b"-1e-310", b"2.5e-310", b"0." + b"0" * 80 + b"1e-300", b"1e-300"]
)
@pytest.mark.parametrize("around", [b'{"n":%b}', b'{"n": %b}', b'{"n":[%b]}', b'{"n":[1,%b]}'])
def test_tiny_numbers_take_a_closer_look(literal: bytes, around: bytes) -> None:
    assert decode_several([b'{"a":1}', around % literal]) is None
