"""Write accepted events as lines of PostgreSQL's COPY text format.

An event's line is made before the head lock is taken; only the position and the time, which the
lock hands out, are put in front of it later. Names, ids and enumerations cannot hold a character
that COPY would read as markup (envelope.check saw to that), so only free text is escaped.
"""

from __future__ import annotations

import re

from penstock.envelope.codec import encode
from penstock.ingress.verdict import Accepted

EVENT_COLUMNS = (
    "position", "received_at", "tenant_id", "id", "type", "source", "occurred_at", "payload",
    "tags", "correlation_id", "causation_id", "traceparent", "ttl_ms", "metadata",
    "schema_version", "schema_hash", "severity", "severity_rule", "content_hash",
)  # fmt: skip
TAG_COLUMNS = ("position", "tenant_id", "tag")

_MARKUP = re.compile(r"[\\\t\n\r]")
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_NULL = "\\N"


def event_line(accepted: Accepted) -> bytes:
    """One event's line after its position and time."""
    e = accepted.envelope
    head = (
        f"\t{e.tenant_id}\t{e.id}\t{e.type}\t{e.source}\t{e.occurred_at.isoformat()}\t"
    ).encode()
    tail = (
        f"\t{_text(e.correlation_id)}\t{_text(e.causation_id)}\t{e.traceparent or _NULL}\t"
        f"{_NULL if e.ttl_ms is None else e.ttl_ms}\t"
    ).encode()
    end = (
        f"\t{_NULL if e.schema_version is None else e.schema_version}\t"
        f"{accepted.schema_hash or _NULL}\t{accepted.severity}\t{accepted.severity_rule}\t"
        f"\\\\x{accepted.content_hash.hex()}\n"
    ).encode()
    payload = encode(e.payload).replace(b"\\", b"\\\\")
    tags = encode(dict(e.tags)).replace(b"\\", b"\\\\") if e.tags else b"{}"
    metadata = encode(dict(e.metadata)).replace(b"\\", b"\\\\") if e.metadata else b"{}"
    return b"".join((head, payload, b"\t", tags, tail, metadata, end))


def tag_lines(accepted: Accepted, position: int) -> str:
    """One line per tag of an event."""
    e = accepted.envelope
    return "".join(
        f"{position}\t{e.tenant_id}\t{_text(f'{key}:{value}')}\n" for key, value in e.tags.items()
    )


def _text(text: str | None) -> str:
    if text is None:
        return _NULL
    if _MARKUP.search(text) is None:
        return text
    return _MARKUP.sub(lambda found: _ESCAPES[found.group()], text)
