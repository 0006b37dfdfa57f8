"""A buffer keeps to its number of events and bytes."""

from __future__ import annotations

from penstock.stream.buffer import Buffer
from penstock.stream.frames import Entry, Frame


def entry(position: int, size: int = 10) -> Entry:
    return Entry(position, (Frame("x", b"." * size, position),))


def test_entries_come_out_in_the_order_they_went_in() -> None:
    buffer = Buffer()
    for position in (1, 2, 3):
        assert buffer.push(entry(position))

    assert [buffer.pop().position for _ in range(3)] == [1, 2, 3]
    assert buffer.bytes == 0


def test_one_event_too_many_is_not_kept() -> None:
    buffer = Buffer(events_max=2)
    assert buffer.push(entry(1))
    assert buffer.push(entry(2))

    assert not buffer.push(entry(3))
    assert len(buffer) == 2


def test_one_byte_too_many_is_not_kept() -> None:
    buffer = Buffer(bytes_max=25)
    assert buffer.push(entry(1))
    assert buffer.push(entry(2))

    assert not buffer.push(entry(3, size=6))
    assert buffer.push(entry(3, size=5))


def test_bytes_held_elsewhere_for_the_same_client_count() -> None:
    buffer = Buffer(bytes_max=25)
    assert buffer.push(entry(1), reserved=15)

    assert not buffer.push(entry(2), reserved=15)
    assert buffer.push(entry(2), reserved=5)


def test_an_event_bigger_than_the_buffer_still_gets_through_an_empty_one() -> None:
    assert Buffer(bytes_max=5).push(entry(1, size=50))


def test_dropping_says_how_many_there_were() -> None:
    buffer = Buffer()
    buffer.push(entry(1))
    buffer.push(entry(2))

    assert buffer.drop() == 2
    assert len(buffer) == 0
    assert buffer.bytes == 0
