"""Frames and names: what is written is read back, and what was changed is recognised."""

from __future__ import annotations

import pytest
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from penstock.transport.port import UNBOUND, Message
from penstock.transport.segment import (
    Corrupt,
    OpenName,
    SegmentName,
    frame,
    parse,
    valid_prefix,
)

messages = st.builds(
    Message,
    json=st.binary(max_size=200).map(lambda data: data.replace(b"\n", b" ")),
    accepted_ms=st.integers(0, 253_402_300_799_999),
    tenant_id=st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True),
    via=st.from_regex(r"[a-z]{1,16}", fullmatch=True),
)


def message(number: int) -> Message:
    return Message(b'{"n":%d}' % number, 1_767_225_600_000 + number, "default", "http")


def forged(body: bytes) -> bytes:
    """A line whose checksum fits, by a hand that knows how."""
    return b"%08x %b\n" % (crc32c(body), body)


def test_a_frame_is_what_the_header_of_the_module_draws() -> None:
    line = frame(Message(b'{"type":"a.b.c"}', 1_767_225_600_000, "default", "http"))

    body = b'16 1767225600000 default/http {"type":"a.b.c"}'
    assert line == b"%08x " % crc32c(body) + body + b"\n"


@given(st.lists(messages, max_size=20))
def test_whatever_is_framed_is_read_back(sent: list[Message]) -> None:
    content = b"".join(map(frame, sent))

    assert list(parse(content)) == sent
    assert valid_prefix(content) == len(content)


@pytest.mark.parametrize(
    "wrong",
    [
        Message(b'{"a":\n1}', 1, "default", "http"),
        Message(b"\n", 1, "default", "http"),
        Message(b"{}", -1, "default", "http"),
        Message(b"{}", 253_402_300_800_000, "default", "http"),
        Message(b"{}", 1, "", "http"),
        Message(b"{}", 1, "a" * 65, "http"),
        Message(b"{}", 1, "a b", "http"),
        Message(b"{}", 1, "a/b", "http"),
        Message(b"{}", 1, "ä", "http"),
        Message(b"{}", 1, "a\n", "http"),
        Message(b"{}", 1, "default", ""),
        Message(b"{}", 1, "default", "HTTP"),
        Message(b"{}", 1, "default", "h" * 17),
    ],
)
def test_what_could_not_be_read_back_is_not_framed(wrong: Message) -> None:
    with pytest.raises(ValueError, match="expected"):
        frame(wrong)


@pytest.mark.parametrize(
    "json", [b"", b"\r", b"\0\xff\xfe", b" ", b"   {}", b"\xe2\x80\xa8", b"\x0b\x0c"]
)
def test_bytes_that_are_no_json_travel_unchanged(json: bytes) -> None:
    sent = Message(json, 0, UNBOUND, "queue")

    assert list(parse(frame(sent))) == [sent]


def test_every_flipped_bit_costs_its_own_line_only_and_never_goes_unnoticed() -> None:
    sent = [message(n) for n in range(4)]
    content = b"".join(map(frame, sent))

    for at in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[at] ^= 1 << bit
            found = list(parse(bytes(changed)))
            good = [line for line in found if isinstance(line, Message)]
            assert any(isinstance(line, Corrupt) for line in found), (at, bit)
            assert all(line in sent for line in good), (at, bit)
            assert len(good) >= len(sent) - 2, (at, bit)  # a lost line end glues two together


@given(st.lists(messages, min_size=1, max_size=6), st.data())
def test_reading_goes_on_after_any_rubbish(sent: list[Message], data: st.DataObject) -> None:
    rubbish = data.draw(st.binary(min_size=1, max_size=100))
    at = data.draw(st.integers(0, len(sent)))
    lines = [frame(each) for each in sent]

    found = list(parse(b"".join([*lines[:at], rubbish + b"\n", *lines[at:]])))

    assert [line for line in found if isinstance(line, Message)] == sent
    assert b"\n".join(x.raw for x in found if isinstance(x, Corrupt)) == rubbish


def test_a_corrupt_line_keeps_all_its_bytes() -> None:
    line = frame(message(1))[:-1]

    assert list(parse(b"X" + line + b"\n")) == [
        Corrupt(b"X" + line, "expected a checksum that fits the line, found another")
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"2 1 default/http",
        b"3 1 default/http {}",
        b"02 1 default/http {}",
        b"+2 1 default/http {}",
        b"2 -1 default/http {}",
        b"2 1_0 default/http {}",
        b"2 253402300800000 default/http {}",
        b"2 " + b"9" * 5_000 + b" default/http {}",
        b"2 1 default {}",
        b"2 1 /http {}",
        b"2 1 default/ {}",
        b"2 1 a/b/c {}",
        b"2 1 \xc3\xa4/http {}",
        b"2 1 " + b"a" * 100_000 + b"/http {}",
    ],
)
def test_a_forged_header_is_corrupt_even_with_a_checksum_that_fits(body: bytes) -> None:
    (line,) = parse(forged(body))

    assert isinstance(line, Corrupt)
    assert line.raw == forged(body)[:-1]


def test_a_torn_tail_is_told_from_whole_lines_at_every_byte() -> None:
    lines = [frame(message(n)) for n in range(3)]
    content = b"".join(lines)
    ends = [sum(map(len, lines[:n])) for n in range(4)]

    for size in range(len(content) + 1):
        assert valid_prefix(content[:size]) == max(end for end in ends if end <= size)


@given(st.lists(messages, max_size=5), st.binary(max_size=300))
def test_rubbish_after_the_last_good_line_is_not_part_of_the_prefix(
    sent: list[Message], rubbish: bytes
) -> None:
    content = b"".join(map(frame, sent))

    assert valid_prefix(content + rubbish) == len(content)


def test_a_corrupt_line_before_a_good_one_is_kept_because_the_good_one_was_acknowledged() -> None:
    content = frame(message(1)) + b"rubbish\n" + frame(message(2))

    assert valid_prefix(content + b"torn") == len(content)


def test_an_unfinished_tail_is_corrupt() -> None:
    (line,) = parse(frame(message(1))[:-1])

    assert isinstance(line, Corrupt)
    assert line.detail == "expected a line end, found the end of the segment"


def test_a_name_says_when_by_whom_after_how_many_and_how_many() -> None:
    name = OpenName(1_767_225_600_000, "0123456789ab", 42, 4711, 99)

    assert name.text == ".open-1767225600000-0123456789ab-000000000042-4711-99.jsonl"
    assert name.seal(7).text == "seg-1767225600000-0123456789ab-000000000042-0000007.jsonl"
    assert name.seal(7).end == 49


@given(st.integers(0, 10**15), st.integers(0, 10**14), st.integers(0, 10**9))
def test_names_are_read_back_however_large_their_numbers(ms: int, start: int, lines: int) -> None:
    name = OpenName(ms, "0123456789ab", start, 1, 2**62)

    assert OpenName.parse(name.text) == name
    assert SegmentName.parse(name.seal(lines).text) == name.seal(lines)


@pytest.mark.parametrize(
    "foreign",
    [
        "",
        "seg-.jsonl",
        "events.jsonl",
        ".open-1767225600000-0123456789ab-000000000042.jsonl",
        "seg-1767225600000-0123456789AB-000000000042-0000007.jsonl",
        "seg-1767225600000-0123456789ab-000000000042-0000007.jsonl.crc",
        "../seg-1767225600000-0123456789ab-000000000042-0000007.jsonl",
        "seg-١٧٦٧٢٢٥٦٠٠٠٠٠-0123456789ab-000000000042-0000007.jsonl",
        "seg-1767225600000-0123456789ab-000000000042-0000007.jsonl\n",
    ],
)
def test_foreign_names_are_nobodys_segments(foreign: str) -> None:
    assert SegmentName.parse(foreign) is None
    assert OpenName.parse(foreign) is None


def test_names_of_one_writer_sort_in_the_order_written() -> None:
    starts = [10**13, 10, 9, 10**12, 0]

    names = sorted(SegmentName(5, "a" * 12, start, 1) for start in starts)

    assert [name.start for name in names] == sorted(starts)
