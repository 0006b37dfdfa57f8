"""A note says what was signed and nothing else: not one of its bytes can change."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest

from penstock.store.audit.checkpoint import (
    Checkpoint,
    SignerKey,
    is_superseded,
    read_key,
    read_note,
)

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = SignerKey(bytes(range(32)))
ROOT = bytes(range(32))
NOTE = KEY.sign(1042, ROOT, AT)


def test_a_note_is_read_as_it_was_signed() -> None:
    assert read_note(NOTE, KEY.verifier) == Checkpoint(KEY.verifier.name, 1042, ROOT, AT)


def test_a_note_has_the_form_that_other_tools_read() -> None:
    name = KEY.verifier.name
    text, _, signature = NOTE.partition("\n\n")

    assert text.split("\n") == [
        name, "1042", base64.b64encode(ROOT).decode(), "2026-03-01T12:00:00.000Z",
    ]  # fmt: skip
    assert signature.startswith(f"\u2014 {name} ")
    assert base64.b64decode(signature.split(" ")[2])[:4] == KEY.verifier.id


def test_no_byte_of_a_note_can_change() -> None:
    for place in range(len(NOTE)):
        for other in ("A", "1", "=", "\n", " ", "\u2014"):
            if NOTE[place] != other:
                with pytest.raises(ValueError, match="expected"):
                    read_note(NOTE[:place] + other + NOTE[place + 1 :], KEY.verifier)


@pytest.mark.parametrize("change", [
    NOTE + "\n", NOTE[:-1], NOTE * 2, "", "\n\n", NOTE.replace("1042", "01042"),
    NOTE.replace("1042", "-1042"), NOTE.replace("\n", "\r\n"), NOTE.replace(".000Z", "Z"),
])  # fmt: skip
def test_a_note_that_was_added_to_or_cut_is_refused(change: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_note(change, KEY.verifier)


def test_a_note_of_another_key_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a checkpoint of"):
        read_note(NOTE, SignerKey(bytes(32)).verifier)


def test_a_witness_may_sign_beside_us() -> None:
    cosigned = f"{NOTE}\u2014 witness.example AAAAAAAA\n"

    assert read_note(cosigned, KEY.verifier, cosigned=True).size == 1042
    with pytest.raises(ValueError, match="spelt anew"):
        read_note(cosigned, KEY.verifier)


def test_a_public_key_is_read_as_it_is_printed() -> None:
    assert read_key(f"{KEY.verifier}\n") == KEY.verifier


@pytest.mark.parametrize(
    "text", ["", "a", "a+b+c", "penstock+00000000+AQ==", str(KEY.verifier)[:-4]]
)
def test_what_is_no_public_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_key(text)


def checkpoint(size: int, seconds: int) -> Checkpoint:
    return Checkpoint("o", size, ROOT, AT + timedelta(seconds=seconds))


@pytest.mark.parametrize(("newest", "before", "superseded"), [
    ((20, 1), (10, 0), True),
    ((20, 59), (10, 0), True),
    ((20, 60), (10, 0), False),
    ((10_009, 1), (10, 0), True),
    ((10_010, 1), (10, 0), False),
])  # fmt: skip
def test_one_checkpoint_a_minute_or_ten_thousand_events_is_kept(
    newest: tuple[int, int], before: tuple[int, int], superseded: bool
) -> None:
    assert is_superseded([checkpoint(*newest), checkpoint(*before)]) is superseded


def test_the_first_checkpoint_is_kept() -> None:
    assert not is_superseded([])
    assert not is_superseded([checkpoint(1, 0)])
