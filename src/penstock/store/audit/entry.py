"""Say what the log is sealed by: one entry for each event, made again from its stored row.

    row ── body ──▶ leaf (ingress/rows.py) ─┐
    position, received_at ───────────────────────┴─▶ entry ── merkle.leaf ──▶ a leaf of the tree

A row is read as a line of COPY and never trusted to be one of ours: whatever was done to it, the
line becomes a body or a ValueError, and equal bodies mean equal rows. PostgreSQL orders keys its
own way, so JSON is spelt again; how it spelt the numbers must be how it spells ours.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from penstock.base.errors import PenstockError
from penstock.envelope.codec import encode, load_stored
from penstock.envelope.envelope import JsonValue
from penstock.envelope.form import json_form
from penstock.ingress.rows import leaf
from penstock.store.audit import merkle

# The columns of a line: what the seal covers, then the body in its own order.
COLUMNS = (
    "position", "received_at", "hash", "tenant_id", "id", "type", "source", "occurred_at",
    "payload", "tags", "correlation_id", "causation_id", "traceparent", "ttl_ms", "metadata",
    "schema_version", "schema_hash", "severity", "severity_rule", "content_hash",
)  # fmt: skip

_ENTRY = Struct(">qq32s")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT = re.compile(rb"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?\+00")
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_UNESCAPES = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_ESCAPES = {b"\\": b"\\\\", b"\t": b"\\t", b"\n": b"\\n", b"\r": b"\\r"}
_MARKUP = re.compile(rb"[\\\t\n\r]")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*', re.DOTALL)


class Row(NamedTuple):
    """One stored event, as far as the seal is concerned."""

    position: int
    received_us: int
    body: bytes
    hash: bytes  # what the row says its own hash is
    tenant_id: bytes
    tags: dict[str, str]

    @property
    def leaf(self) -> bytes:
        """What the row's hash must be."""
        return leaf(self.body)


def entry(position: int, received_us: int, row_leaf: bytes) -> bytes:
    """What the tree keeps of an event: where it is, when it came, and the hash of all it says."""
    return _ENTRY.pack(position, received_us, row_leaf)


def entry_hash(position: int, received_us: int, row_leaf: bytes) -> bytes:
    """The leaf of the tree for one event."""
    return merkle.leaf(_ENTRY.pack(position, received_us, row_leaf))


def micros(at: datetime) -> int:
    """Microseconds since 1970, exactly."""
    span = at - _EPOCH
    return (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds


def position_of(line: bytes) -> int:
    """The position a line is about, whatever else it says."""
    return int(line.partition(b"\t")[0])


def read_row(line: bytes) -> Row:
    """The row that a line of COPY says, in the order of COLUMNS; ValueError when it says none."""
    fields = line.removesuffix(b"\n").split(b"\t")
    if len(fields) != len(COLUMNS):
        raise ValueError(f"expected {len(COLUMNS)} columns, found {len(fields)}")
    position, received_at, said, tenant_id = fields[:4]
    payload, _ = _spelt_again(fields[8])
    tags_form, tags = _spelt_again(fields[9])
    if not isinstance(tags, dict) or not all(isinstance(value, str) for value in tags.values()):
        raise ValueError("expected tags of strings, found something else")
    metadata, _ = _spelt_again(fields[14])
    body = b"\t".join(
        (*fields[3:7], _occurred(fields[7]), payload, tags_form, _text(fields[10]),
         _text(fields[11]), *fields[12:14], metadata, *fields[15:])
    )  # fmt: skip
    return Row(int(position), micros_of(received_at), body, _bytes(said), tenant_id, tags)  # type: ignore[arg-type]


def unescaped(field: bytes) -> bytes:
    """What a field of COPY stands for."""
    if b"\\" not in field:
        return field
    return _ESCAPED.sub(lambda found: _UNESCAPES.get(found[1], found[1]), field)


@lru_cache(256)  # events of one commit share their instant
def micros_of(field: bytes) -> int:
    """Microseconds since 1970 of an instant that PostgreSQL wrote; ValueError for odd ones."""
    return micros(datetime.fromisoformat(_occurred(field).decode()))


def _occurred(field: bytes) -> bytes:
    """The instant as `datetime.isoformat` writes it."""
    if len(field) == 22 and field[19:] == b"+00":
        return b"%bT%b+00:00" % (field[:10], field[11:19])
    found = _INSTANT.fullmatch(field)
    if found is None:
        raise ValueError("expected an instant from 1970 to 9999, found another")
    return b"%bT%b.%b+00:00" % (found[1], found[2], found[3].ljust(6, b"0"))


def _bytes(field: bytes) -> bytes:
    if not field.startswith(b"\\\\x"):
        raise ValueError("expected bytes, found something else")
    return bytes.fromhex(field[3:].decode())


def _text(field: bytes) -> bytes:
    """Free text as the body has it: fewer characters are escaped than COPY escapes."""
    if b"\\" not in field or field == b"\\N":
        return field
    return _MARKUP.sub(lambda found: _ESCAPES[found[0]], unescaped(field))


def _spelt_again(field: bytes) -> tuple[bytes, JsonValue]:
    """JSON in its one spelling, escaped for the body, and its value."""
    if field == b"{}":
        return field, {}
    text = field.replace(b"\\\\", b"\\") if b"\\" in field else field
    try:
        value = load_stored(text)
        written = encode(value)
        form = json_form(value)
    except (PenstockError, InvalidOperation, RecursionError) as error:
        raise ValueError("expected JSON that could have been stored") from error
    if written.translate(None, b" ") != text.translate(None, b" "):
        _check_numbers(written, text)
    return (form.replace(b"\\", b"\\\\") if b"\\" in form else form), value


def _check_numbers(written: bytes, text: bytes) -> None:
    """Raise ValueError unless PostgreSQL would write these very numbers for ours."""
    ours, theirs = _TOKEN.findall(written), _TOKEN.findall(text)
    for one, other in zip(ours, theirs, strict=True):
        if one == other or one.startswith(b'"'):
            continue
        plain = format(Decimal(one.decode()), "f")
        if not plain.strip("-0."):
            plain = plain.removeprefix("-")
        if other.decode() not in (plain, plain.removesuffix(".0")):
            raise ValueError("expected a number as it was stored, found it spelt anew")
