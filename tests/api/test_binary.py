"""A CloudEvent in headers becomes one message that keeps its data byte for byte."""

from __future__ import annotations

import json

import pytest

from penstock.api.binary import read_binary
from penstock.base.errors import NotInProfile
from penstock.envelope.codec import decode

HEADERS = {
    "content-type": "application/json",
    "ce-specversion": "1.0",
    "ce-id": "e-1",
    "ce-type": "a.b",
    "ce-source": "c.d",
    "authorization": "Bearer never-part-of-an-event",
}


def test_attributes_and_data_make_one_structured_event() -> None:
    item, faults = read_binary(HEADERS, b'{"n": 1.50}')

    assert faults == ()
    assert b'{"n": 1.50}' in item.raw
    assert decode(item.raw) == item.tree
    assert isinstance(item.tree, dict)
    assert item.tree["id"] == "e-1"


def test_an_event_without_data_has_none() -> None:
    item, _ = read_binary(HEADERS, b"")

    assert isinstance(item.tree, dict)
    assert "data" not in item.tree


@pytest.mark.parametrize("body", [b"{", b'1,"source":"forged"', b"\xff", b'{"a":1,"a":2}', b"}"])
def test_data_that_is_no_json_stays_alone_and_is_refused(body: bytes) -> None:
    item, _ = read_binary(HEADERS, body)

    assert (item.raw, item.tree) == (body, None)
    with pytest.raises(NotInProfile):
        decode(item.raw)


def test_data_too_deep_with_its_attributes_is_refused_with_them() -> None:
    item, _ = read_binary(HEADERS, b"[" * 32 + b"]" * 32)

    assert item.tree is None
    with pytest.raises(NotInProfile) as caught:
        decode(item.raw)
    assert caught.value.reason == "too_deep"


def test_faults_of_headers_are_told_and_the_message_is_kept_whole() -> None:
    item, faults = read_binary({**HEADERS, "ce-subject": "%ff"}, b"{}")

    assert [fault.pointer for fault in faults] == ["/subject"]
    kept = json.loads(item.raw)
    assert (kept["subject"], kept["data_base64"]) == ("%ff", "e30=")


def test_no_other_header_is_ever_part_of_the_message() -> None:
    for body in (b"{}", b"{", b"[" * 32 + b"]" * 32):
        assert b"never-part" not in read_binary(HEADERS, body)[0].raw
