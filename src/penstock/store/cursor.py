"""Give a reader a token for "go on from here" that only we can make.

    base64url( position, 8 bytes · HMAC-SHA-256 of tenant, query and position, 16 bytes )

A cursor carries the position, never a time, so a late event cannot be skipped. It is bound to its
tenant and its query: used elsewhere, or changed by one bit, it is refused. 24 bytes make exactly
32 characters, so every cursor has one spelling only.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re

from penstock.base.errors import QueryInvalid

_FORM = re.compile(r"[A-Za-z0-9_-]{32}")
_POSITION_BYTES = 8
_MAC_BYTES = 16


def write_cursor(tenant: str, position: int, query_digest: str, *, key: bytes) -> str:
    """A token that stands for everything older than `position` in this query."""
    body = position.to_bytes(_POSITION_BYTES, "big")
    token = body + _mac(tenant, body, query_digest, key)
    return base64.urlsafe_b64encode(token).decode("ascii")


def read_cursor(text: str, tenant: str, query_digest: str, *, key: bytes) -> int:
    """The position in a cursor that we wrote for this tenant and query; else QueryInvalid."""
    if _FORM.fullmatch(text) is None:
        raise _refused("expected a cursor from page.nextCursor, found other text")
    token = base64.urlsafe_b64decode(text)
    body, mac = token[:_POSITION_BYTES], token[_POSITION_BYTES:]
    if not hmac.compare_digest(mac, _mac(tenant, body, query_digest, key)):
        raise _refused(
            "expected a cursor of this query, found one that was changed or is another's"
        )
    return int.from_bytes(body, "big")


def _mac(tenant: str, body: bytes, query_digest: str, key: bytes) -> bytes:
    said = b"\0".join((b"penstock cursor", tenant.encode(), query_digest.encode(), body))
    return hmac.digest(key, said, hashlib.sha256)[:_MAC_BYTES]


def _refused(detail: str) -> QueryInvalid:
    return QueryInvalid(
        detail,
        parameter="cursor",
        remedy="Start again without a cursor; then pass on page.nextCursor unchanged, "
        "with the same filters.",
    )
