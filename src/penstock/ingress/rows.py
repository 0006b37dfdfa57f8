"""Write accepted events as lines of PostgreSQL's COPY text format, and hash them.

    Judged ── write ──▶ Row: the event's line and its tags', as bytes

    tenant ⇥ id ⇥ type ⇥ … ⇥ content_hash       the body: everything the row says
    leaf = SHA-256(0x00 ‖ body)                  the row's hash; any later change of the row shows
    position ⇥ received_at ⇥ body ⇥ leaf         the line

Body and leaf are made before the head lock is taken; only position and time, which the lock hands
out, are put in front later (the seal over a range of leaves covers those). Names, ids and
enumerations cannot hold a character that COPY would read as markup (envelope.check saw to that),
so only free text is escaped, and a body says exactly one thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256

from penstock.envelope.envelope import Envelope
from penstock.envelope.form import metadata_form, tags_form
from penstock.ingress.lot import Judged, Row, Written
from penstock.ingress.verdict import Accepted, Rejected

EVENT_COLUMNS = (
    "position", "received_at", "tenant_id", "id", "type", "source", "occurred_at", "payload",
    "tags", "correlation_id", "causation_id", "traceparent", "ttl_ms", "metadata",
    "schema_version", "schema_hash", "severity", "severity_rule", "content_hash", "hash",
)  # fmt: skip
TAG_COLUMNS = ("position", "tenant_id", "tag")

_MARKUP = re.compile(r"[\\\t\n\r]")
_search = _MARKUP.search
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_NULL = "\\N"
_new = tuple.__new__  # a row is made for every event, and its own way of making is slower


def write(judged: Iterable[Judged]) -> list[Written]:
    """Every message as a lot takes it."""
    return [
        verdict if isinstance(verdict, Rejected) else _row(raw, verdict) for raw, verdict in judged
    ]


def _row(raw: bytes, accepted: Accepted) -> Row:
    event_id, event_type, source, occurred_at, _, tags, *_, tenant_id = accepted.envelope
    lines = [f"\t{tenant_id}\t{key}:{_text(value)}\n".encode() for key, value in tags.items()]
    return _new(
        Row,
        (raw, tenant_id, event_id, event_type, source, occurred_at, accepted.content_hash,
         event_line(accepted), tuple(lines)),
    )  # fmt: skip


def event_line(accepted: Accepted) -> bytes:
    """One event's line after its position and time, its hash included."""
    body = event_body(
        accepted.envelope, accepted.payload_form, accepted.schema_hash, accepted.severity,
        accepted.severity_rule, accepted.content_hash,
    )  # fmt: skip
    return b"\t%b\t\\\\x%b\n" % (body, leaf(body).hex().encode())


def leaf(body: bytes) -> bytes:
    """The hash of one row."""
    return sha256(b"\x00" + body).digest()


def event_body(
    envelope: Envelope,
    payload_form: bytes,
    schema_hash: str | None,
    severity: str,
    severity_rule: str,
    content_hash: bytes,
) -> bytes:
    """Everything a row says but its position, its time and its hash."""
    (event_id, event_type, source, occurred_at, _, tags, correlation_id, causation_id,
     traceparent, ttl_ms, metadata, schema_version, tenant_id) = envelope  # fmt: skip
    head = f"{tenant_id}\t{event_id}\t{event_type}\t{source}\t{occurred_at.isoformat()}\t"
    middle = (
        f"\t{_text(correlation_id)}\t{_text(causation_id)}\t{traceparent or _NULL}\t"
        f"{_NULL if ttl_ms is None else ttl_ms}\t"
    )
    return b"%b%b\t%b%b%b%b%b" % (
        head.encode(),
        _json(payload_form),
        _json(tags_form(tags)),
        middle.encode(),
        _json(metadata_form(metadata)),
        _end(schema_version, schema_hash, severity, severity_rule),
        content_hash.hex().encode(),
    )


@lru_cache(4096)
def _end(version: int | None, schema_hash: str | None, severity: str, rule: str) -> bytes:
    """What events of one schema have in common, up to the hash of their content."""
    said = f"{_NULL if version is None else version}\t{schema_hash or _NULL}\t{severity}\t{rule}"
    return f"\t{said}\t\\\\x".encode()


def _json(written: bytes) -> bytes:
    return written.replace(b"\\", b"\\\\") if b"\\" in written else written


def _text(text: str | None) -> str:
    if text is None:
        return _NULL
    if text.isalnum() or _search(text) is None:
        return text
    return _MARKUP.sub(lambda found: _ESCAPES[found.group()], text)
