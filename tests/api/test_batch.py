"""A body is cut into its events byte for byte, in linear time, or taken as one message."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api.batch import TooManyItems, split
from penstock.envelope.codec import decode, decode_array

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(st.lists(_JSON, min_size=0, max_size=6), st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_every_array_is_cut_into_exactly_its_items(
    values: list[object], wrapped: bool, indent: int | str | None
) -> None:
    body = json.dumps({"events": values} if wrapped else values, indent=indent).encode()

    items = split(body, items_max=10)

    assert items is not None
    assert [json.loads(item) for item in items] == values


@pytest.mark.parametrize(
    ("body", "items"),
    [
        (b'[{"a": 1.50},  {"b":"x,]}"} ]', [b'{"a": 1.50}', b'{"b":"x,]}"}']),
        (b'[{"a":"\\"],"},1]', [b'{"a":"\\"],"}', b"1"]),
        (b'[{"a":"\\\\"},1]', [b'{"a":"\\\\"}', b"1"]),
        (b' {"events" : [ 1 , [2] ] } ', [b"1", b"[2]"]),
        (b"[]", []),
        (b'{"events":[ ]}', []),
    ],
)
def test_an_item_keeps_the_bytes_it_came_with(body: bytes, items: list[bytes]) -> None:
    assert split(body, items_max=10) == items


@pytest.mark.parametrize(
    "body",
    [
        b'{"type":"a.b"}',
        b'{"type":"a.b","events":[1]}',
        b'{"events":[1],"type":"a.b"}',
        b'{"events":{"0":1}}',
        b"",
        b"nonsense",
        b'"[1,2]"',
        b"[1,]",
        b"[,1]",
        b"[1",
        b"[1]]",
        b'["unfinished]',
        b"[1} ",
        b'{"events":[1]',
        b'{"events":[1]]',
        b"[" * 100,
    ],
)
def test_what_is_no_whole_batch_is_one_message(body: bytes) -> None:
    assert split(body, items_max=10) is None


def test_a_batch_over_its_limit_is_given_up_at_the_first_item_too_many() -> None:
    with pytest.raises(TooManyItems):
        split(b"[" + b"1," * 1_000_000 + b"1]", items_max=10)


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b'\\"' * 4_000_000,
        b'["' + b'\\"' * 4_000_000,
        b"[" * 8_000_000,
        b"[[" + b"[]," * 2_600_000,
        b"[" + b'"' * 7_999_999,
        b'[{"a":"' + b"x" * 8_000_000,
    ],
    ids=["quotes", "escapes", "deep", "wide", "pairs", "unfinished"],
)
def test_a_hostile_body_costs_no_more_than_a_moment(body: bytes) -> None:
    begun = time.process_time()

    assert split(body, items_max=5_000) is None

    assert time.process_time() - begun < 2.0


@given(st.lists(_JSON, min_size=1, max_size=6))
def test_a_compact_array_is_read_at_once_as_it_is_cut(values: list[object]) -> None:
    body = json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()

    plain = decode_array(body, items_max=10)

    if plain is not None:
        raws, trees = plain
        assert raws == split(body, items_max=10)
        assert trees == [decode(raw) for raw in raws]


@pytest.mark.parametrize(
    "body",
    [b'[{"a":1}, {"b":2}]', b'[{"a":1,"a":2}]', b"[1e400]", b"[1]x", b"[" * 100, b"[]", b"[1,2,3]"],
)
def test_what_is_not_plain_is_left_to_the_exact_way(body: bytes) -> None:
    assert decode_array(body, items_max=2) is None
