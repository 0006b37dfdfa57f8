"""A ciphertext opens with its key at its place, and nowhere else."""

from __future__ import annotations

import pytest
from tests.store.privacy.support import ROOT

from penstock.store.privacy.cipher import (
    FieldPlace,
    KeyPlace,
    RootKey,
    Unreadable,
    decrypt,
    encrypt,
    key_number,
)

KEY, NONCE = b"k" * 32, b"n" * 12
PLACE = FieldPlace("default", "evt-1", "/email")
SEALED = encrypt(KEY, 3, b'"alice"', PLACE, NONCE)


def test_what_was_encrypted_is_decrypted() -> None:
    assert decrypt(KEY, SEALED, PLACE) == b'"alice"'
    assert key_number(SEALED) == 3
    assert "alice" not in SEALED


@pytest.mark.parametrize("place", [
    FieldPlace("other", "evt-1", "/email"),
    FieldPlace("default", "evt-2", "/email"),
    FieldPlace("default", "evt-1", "/name"),
    FieldPlace("defaultevt", "-1", "/email"),
    FieldPlace("", "defaultevt-1", "/email"),
])  # fmt: skip
def test_a_ciphertext_that_was_copied_elsewhere_does_not_open(place: FieldPlace) -> None:
    with pytest.raises(Unreadable):
        decrypt(KEY, SEALED, place)


def test_another_key_opens_nothing() -> None:
    with pytest.raises(Unreadable):
        decrypt(b"x" * 32, SEALED, PLACE)


@pytest.mark.parametrize("sealed", ["", "3.", "3.AAAA", "3.!!", SEALED[:-8], "3" + SEALED])
def test_what_is_no_ciphertext_does_not_open(sealed: str) -> None:
    with pytest.raises(Unreadable):
        decrypt(KEY, sealed if sealed != "3" + SEALED else sealed[:-4], PLACE)


@pytest.mark.parametrize("sealed", ["", "x", ".AA", "-1.AA", "x.AA", "\u0663.AA"])
def test_what_names_no_key_needs_none(sealed: str) -> None:
    assert key_number(sealed) is None


def test_a_key_is_unwrapped_by_the_root_that_wrapped_it_for_its_subject_only() -> None:
    place = KeyPlace("default", "abc", 1)
    wrapped = ROOT.wrap(KEY, place, NONCE)

    assert ROOT.unwrap(wrapped, place) == KEY
    assert KEY not in wrapped
    for other in (KeyPlace("default", "abc", 2), KeyPlace("default", "abd", 1)):
        with pytest.raises(Unreadable):
            ROOT.unwrap(wrapped, other)
    with pytest.raises(Unreadable):
        RootKey(b"o" * 32).unwrap(wrapped, place)


def test_a_pseudonym_is_the_same_for_one_subject_and_of_no_use_without_the_root() -> None:
    assert ROOT.pseudonym("default", "alice") == ROOT.pseudonym("default", "alice")
    assert ROOT.pseudonym("default", "alice") != ROOT.pseudonym("other", "alice")
    assert ROOT.pseudonym("default", "alice") != RootKey(b"o" * 32).pseudonym("default", "alice")
    assert len(ROOT.pseudonym("default", "x" * 1000)) == 32


def test_every_use_of_the_root_has_a_key_of_its_own() -> None:
    used = {ROOT.fingerprint, ROOT.content(b""), ROOT.content(bytes(32))}

    assert len(used) == 3


def test_a_root_key_has_256_bits() -> None:
    with pytest.raises(ValueError, match="expected a key of 32 bytes, found 31"):
        RootKey(b"x" * 31)
