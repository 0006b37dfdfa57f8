"""Sign what the log was at some size, as a note that anybody can check without us.

    penstock/3f2a9c0d1e4b5a69           origin: whose log
    1042                                size: how many events
    CsUYapGGPo4dkMgIAUqom/Xajj7h…=      root of the tree over them, base64
    2026-03-01T12:00:00.000Z            when

    — penstock/3f2a9c0d1e4b5a69 Az3grlgtzPI…=      key id and Ed25519 signature, base64

The form is C2SP tlog-checkpoint in a C2SP signed note. A note is read strictly: writing what was
read must give the same bytes, so not one of them can change unseen.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from penstock.base.clock import format_instant, parse_instant
from penstock.store.audit.merkle import HASH

KEPT_EVERY = timedelta(seconds=60)
KEPT_EVENTS = 10_000
_ED25519 = b"\x01"  # the algorithm's number among C2SP note keys
_SIGNATURE = "\u2014 "
_SIZE_DIGITS_MAX = 19


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a log was: so many events, under this root, at that time."""

    origin: str
    size: int
    root: bytes
    at: datetime

    @property
    def text(self) -> str:
        """What is signed."""
        root = base64.b64encode(self.root).decode()
        return f"{self.origin}\n{self.size}\n{root}\n{format_instant(self.at)}\n"


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key by the name of the log it signs for."""

    name: str
    public: bytes

    @property
    def id(self) -> bytes:
        """The four bytes that a signature names its key by."""
        return sha256(self.name.encode() + b"\n" + _ED25519 + self.public).digest()[:4]

    def __str__(self) -> str:
        key = base64.b64encode(_ED25519 + self.public).decode()
        return f"{self.name}+{self.id.hex()}+{key}"


class SignerKey:
    """The private key of a log."""

    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        public = self._key.public_key().public_bytes_raw()
        self.verifier = VerifierKey(f"penstock/{sha256(public).hexdigest()[:16]}", public)

    def sign(self, size: int, root: bytes, at: datetime) -> str:
        """The note that says so."""
        text = Checkpoint(self.verifier.name, size, root, at).text
        return _note(text, self.verifier, self._key.sign(text.encode()))


def read_note(note: str, key: VerifierKey, *, cosigned: bool = False) -> Checkpoint:
    """The checkpoint of a note that this key signed; ValueError for any other note.

    `cosigned` lets witnesses have added their signatures to ours.
    """
    text, found, signatures = note.partition("\n\n")
    if not found:
        raise ValueError("expected a signed note, found none")
    checkpoint = _read_text(f"{text}\n", key)
    mine = [line for line in signatures.splitlines() if _key_id(line) == key.id]
    if len(mine) != 1:
        raise ValueError(f"expected one signature of {key.name}, found {len(mine)}")
    signature = base64.b64decode(mine[0].rpartition(" ")[2])[4:]
    try:
        Ed25519PublicKey.from_public_bytes(key.public).verify(signature, checkpoint.text.encode())
    except InvalidSignature:
        raise ValueError("expected a signature over these very bytes, found another") from None
    if not cosigned and note != _note(checkpoint.text, key, signature):
        raise ValueError("expected a note as it was written, found it spelt anew")
    return checkpoint


def read_key(text: str) -> VerifierKey:
    """A public key as `penstock audit key` prints it; ValueError for anything else."""
    name, _, rest = text.strip().partition("+")
    key_id, _, encoded = rest.partition("+")
    raw = _decoded(encoded)
    key = VerifierKey(name, raw[1:])
    if not name or raw[:1] != _ED25519 or len(raw) != 33 or key_id != key.id.hex():
        raise ValueError("expected name+id+key as `penstock audit key` prints it")
    return key


def is_superseded(kept: Sequence[Checkpoint]) -> bool:
    """Whether the next checkpoint may take the place of the newest: `kept` is newest first.

    One a minute stays, and one every ten thousand events; and the newest, always.
    """
    if len(kept) < 2:
        return False
    newest, before = kept[0], kept[1]
    return newest.at - before.at < KEPT_EVERY and newest.size - before.size < KEPT_EVENTS


def _note(text: str, key: VerifierKey, signature: bytes) -> str:
    signed = base64.b64encode(key.id + signature).decode()
    return f"{text}\n{_SIGNATURE}{key.name} {signed}\n"


def _read_text(text: str, key: VerifierKey) -> Checkpoint:
    lines = text.split("\n")
    if len(lines) != 5 or lines[0] != key.name:
        raise ValueError(f"expected a checkpoint of {key.name}, found another text")
    digits = lines[1]
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _SIZE_DIGITS_MAX):
        raise ValueError("expected a size, found something else")
    found = Checkpoint(lines[0], int(digits), _decoded(lines[2]), parse_instant(lines[3]))
    if len(found.root) != HASH or found.text != text:
        raise ValueError("expected a checkpoint as it was written, found it spelt anew")
    return found


def _key_id(line: str) -> bytes:
    name, _, encoded = line.removeprefix(_SIGNATURE).rpartition(" ")
    if not line.startswith(_SIGNATURE) or not name:
        return b""
    try:
        return _decoded(encoded)[:4]
    except ValueError:
        return b""


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("expected base64, found something else") from None
