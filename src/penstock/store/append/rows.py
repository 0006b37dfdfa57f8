"""Write an event as a value of the type `append_row`, as PostgreSQL takes it: binary.

    Accepted ── pack_event ──▶ the columns of its row, its hash, and its tags as words

A record on the wire is the number of its columns, then for each its type, its size and its bytes
(record_recv in PostgreSQL). tests/store/append/test_rows.py has PostgreSQL read everything back.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from penstock.envelope.form import metadata_form, tags_form
from penstock.ingress.rows import event_body, leaf
from penstock.ingress.verdict import Accepted
from penstock.store.append.arrays import pack_bytes

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SIZED = struct.Struct("!iI").pack
_LONG = struct.Struct("!iiq").pack
_INT = struct.Struct("!iii").pack
# Types, fixed for ever: pg_type.dat.
_TEXT, _BYTEA, _JSONB, _TIME, _INT4, _INT8, _TEXTS = 25, 17, 3802, 1184, 23, 20, 1009
_NO_TEXT, _NO_INT4, _NO_INT8 = (struct.pack("!ii", kind, -1) for kind in (_TEXT, _INT4, _INT8))
_EVENT_COLUMNS = struct.pack("!i", 19)


def pack_event(accepted: Accepted) -> bytes:
    """One event as an `append_row`."""
    envelope, severity, rule, schema_hash, content_hash, payload_form, _ = accepted
    (event_id, event_type, source, occurred_at, _, tags, correlation_id, causation_id,
     traceparent, ttl_ms, metadata, schema_version, tenant_id) = envelope  # fmt: skip
    body = event_body(envelope, payload_form, schema_hash, severity, rule, content_hash)
    return b"".join((
        _EVENT_COLUMNS, _name(tenant_id), _text(event_id), _name(event_type), _name(source),
        _time(occurred_at), _json(payload_form), _json(tags_form(tags)), _text(correlation_id),
        _text(causation_id), _text(traceparent),
        _NO_INT8 if ttl_ms is None else _LONG(_INT8, 8, ttl_ms), _json(metadata_form(metadata)),
        _schema(schema_version, schema_hash, severity, rule), _bytes(_BYTEA, content_hash),
        _bytes(_BYTEA, leaf(body)), _bytes(_TEXTS, _words(tags.items())),
    ))  # fmt: skip


def _words(tags: Iterable[tuple[str, str]]) -> bytes:
    return pack_bytes([f"{key}:{value}".encode() for key, value in tags])


def _bytes(kind: int, data: bytes) -> bytes:
    return _SIZED(kind, len(data)) + data


def _text(text: str | None) -> bytes:
    return _NO_TEXT if text is None else _bytes(_TEXT, text.encode())


@lru_cache(4096)
def _name(text: str) -> bytes:
    """A text that many events have in common."""
    return _text(text)


@lru_cache(4096)
def _schema(version: int | None, schema_hash: str | None, severity: str, rule: str) -> bytes:
    """The columns that events of one schema have in common."""
    number = _NO_INT4 if version is None else _INT(_INT4, 4, version)
    return number + _text(schema_hash) + _text(severity) + _text(rule)


def _json(written: bytes) -> bytes:
    return _SIZED(_JSONB, len(written) + 1) + b"\x01" + written


def _time(at: datetime) -> bytes:
    return _LONG(_TIME, 8, (at - _EPOCH) // _MICROSECOND)
