"""Write accepted events as lines of PostgreSQL's COPY text format, and hash them.

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
from hashlib import sha256

from penstock.envelope.envelope import Envelope
from penstock.envelope.form import metadata_form, tags_form
from penstock.ingress.verdict import Accepted

EVENT_COLUMNS = (
    "position", "received_at", "tenant_id", "id", "type", "source", "occurred_at", "payload",
    "tags", "correlation_id", "causation_id", "traceparent", "ttl_ms", "metadata",
    "schema_version", "schema_hash", "severity", "severity_rule", "content_hash", "hash",
)  # fmt: skip
TAG_COLUMNS = ("position", "tenant_id", "tag")

_MARKUP = re.compile(r"[\\\t\n\r]")
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_NULL = "\\N"


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
    e = envelope
    head = f"{e.tenant_id}\t{e.id}\t{e.type}\t{e.source}\t{e.occurred_at.isoformat()}\t"
    middle = (
        f"\t{_text(e.correlation_id)}\t{_text(e.causation_id)}\t{e.traceparent or _NULL}\t"
        f"{_NULL if e.ttl_ms is None else e.ttl_ms}\t"
    )
    end = (
        f"\t{_NULL if e.schema_version is None else e.schema_version}\t{schema_hash or _NULL}\t"
        f"{severity}\t{severity_rule}\t\\\\x{content_hash.hex()}"
    )
    return b"".join(
        (head.encode(), _json(payload_form), b"\t", _json(tags_form(e.tags)), middle.encode(),
         _json(metadata_form(e.metadata)), end.encode())
    )  # fmt: skip


def tag_lines(accepted: Accepted, position: int) -> str:
    """One line per tag of an event."""
    e = accepted.envelope
    return "".join(
        f"{position}\t{e.tenant_id}\t{_text(f'{key}:{value}')}\n" for key, value in e.tags.items()
    )


def _json(written: bytes) -> bytes:
    return written.replace(b"\\", b"\\\\") if b"\\" in written else written


def _text(text: str | None) -> str:
    if text is None:
        return _NULL
    if _MARKUP.search(text) is None:
        return text
    return _MARKUP.sub(lambda found: _ESCAPES[found.group()], text)
