"""Hold ids to their shape, their order and their repeatability."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.ids import _Sequence, derived_id, is_uuid7, uuid7


def test_a_new_id_is_a_uuid_of_version_7() -> None:
    made = uuid7()

    assert is_uuid7(made)
    assert uuid.UUID(made).version == 7
    assert uuid.UUID(made).variant == uuid.RFC_4122


def test_ids_of_one_process_sort_in_the_order_they_were_made() -> None:
    made = [uuid7() for _ in range(20_000)]

    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_threads_never_make_the_same_id() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: uuid7(), range(5_000)))

    assert len(set(made)) == len(made)


def test_the_sequence_grows_even_when_the_clock_goes_back() -> None:
    sequence = _Sequence()

    ticks = [sequence.next(ms) for ms in (1000, 1000, 5, 0, 1001, 1001)]

    assert ticks == sorted(set(ticks))


@given(st.integers(0, 2**48 - 1), st.lists(st.text(max_size=9) | st.binary(max_size=9)))
def test_a_derived_id_is_the_same_every_time_and_looks_like_a_uuid7(
    at_ms: int, parts: list[str | bytes]
) -> None:
    made = derived_id(at_ms, *parts)

    assert made == derived_id(at_ms, *parts)
    assert is_uuid7(made)
    assert int(made.replace("-", "")[:12], 16) == at_ms


def test_parts_of_a_derived_id_do_not_run_into_each_other() -> None:
    ids = {derived_id(0, "ab", "c"), derived_id(0, "a", "bc"), derived_id(0, "abc")}

    assert len(ids | {derived_id(1, "abc"), derived_id(0, "abc", "")}) == 5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "018f3c2e7b1a7c3d9e4f0123456789ab",
        "018F3C2E-7B1A-7C3D-9E4F-0123456789AB",
        "018f3c2e-7b1a-4c3d-9e4f-0123456789ab",
        "018f3c2e-7b1a-7c3d-ce4f-0123456789ab",
        "018f3c2e-7b1a-7c3d-9e4f-0123456789ab\n",
    ],
)
def test_only_the_canonical_form_is_a_uuid7(text: str) -> None:
    assert not is_uuid7(text)
