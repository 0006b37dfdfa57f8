"""Encrypt what is personal, each subject's data under a key of its own.

    root key ─┬─ wraps each subject's data key          destroyed key = data nobody can read again
    (a file)  ├─ makes pseudonyms of subjects           so that no table holds their ids
              └─ keys the hash that tells duplicates    so that nobody can guess a payload back

AES-256-GCM throughout. Every ciphertext is bound to its tenant, its event and its place, so one
that is copied elsewhere does not open. Pure: random bytes are arguments.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY = 32
NONCE = 12
_PSEUDONYM_CHARS = 32


class Unreadable(ValueError):
    """A ciphertext that this key does not open, at this place."""


class RootKey:
    """The key of the installation, and what is derived from it."""

    def __init__(self, root: bytes) -> None:
        if len(root) != KEY:
            raise ValueError(f"expected a key of {KEY} bytes, found {len(root)}")
        self._wrap = AESGCM(_derived(root, b"wrap"))
        self._subject = _derived(root, b"subject")
        self._content = _derived(root, b"content")
        self.fingerprint = _derived(root, b"fingerprint")

    def pseudonym(self, tenant_id: str, subject: str) -> str:
        """What stands for a subject in every table; the same one for the same subject."""
        return _mac(self._subject, tenant_id, subject).hex()[:_PSEUDONYM_CHARS]

    def content(self, content_hash: bytes) -> bytes:
        """The content hash of an event with personal data: equal for equal content, to us only."""
        return hmac.digest(self._content, content_hash, "sha256")

    def wrap(self, key: bytes, place: KeyPlace, nonce: bytes) -> bytes:
        """A subject's key as it is kept."""
        return nonce + self._wrap.encrypt(nonce, key, place.bound)

    def unwrap(self, wrapped: bytes, place: KeyPlace) -> bytes:
        """A subject's key; Unreadable when it was wrapped by another root, or for another place."""
        return _opened(self._wrap, wrapped, place.bound)


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """Which key of which subject."""

    tenant_id: str
    subject: str  # the pseudonym
    number: int

    @property
    def bound(self) -> bytes:
        return _joined(self.tenant_id, self.subject, str(self.number))


@dataclass(frozen=True, slots=True)
class FieldPlace:
    """Which field of which event."""

    tenant_id: str
    event_id: str
    pointer: str

    @property
    def bound(self) -> bytes:
        return _joined(self.tenant_id, self.event_id, self.pointer)


def encrypt(key: bytes, number: int, plain: bytes, place: FieldPlace, nonce: bytes) -> str:
    """A field as it is stored: the number of its key, and the ciphertext."""
    sealed = nonce + AESGCM(key).encrypt(nonce, plain, place.bound)
    return f"{number}.{base64.b64encode(sealed).decode()}"


def key_number(encrypted: str) -> int | None:
    """Which of its subject's keys a stored field needs; None when it holds nothing any more."""
    number, dot, _ = encrypted.partition(".")
    return int(number) if dot and number.isascii() and number.isdecimal() else None


def decrypt(key: bytes, encrypted: str, place: FieldPlace) -> bytes:
    """The plaintext of a stored field; Unreadable when this key does not open it here."""
    try:
        sealed = base64.b64decode(encrypted.partition(".")[2], validate=True)
    except binascii.Error:
        raise Unreadable("expected base64, found something else") from None
    return _opened(AESGCM(key), sealed, place.bound)


def _opened(cipher: AESGCM, sealed: bytes, bound: bytes) -> bytes:
    try:
        return cipher.decrypt(sealed[:NONCE], sealed[NONCE:], bound)
    except (InvalidTag, ValueError):
        raise Unreadable("expected a ciphertext of this key and place, found another") from None


def _derived(root: bytes, label: bytes) -> bytes:
    return hmac.digest(root, b"penstock/privacy/1/" + label, "sha256")


def _mac(key: bytes, *parts: str) -> bytes:
    return hmac.digest(key, _joined(*parts), "sha256")


def _joined(*parts: str) -> bytes:
    """The parts so that no two lists of parts give the same bytes."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join(b"%d:%b" % (len(each), each) for each in encoded)
