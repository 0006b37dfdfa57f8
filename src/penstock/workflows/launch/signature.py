"""Sign webhooks and check their signatures, as Standard Webhooks 1.0 says.

    webhook-id         the same for every try, so that a receiver can take it once
    webhook-timestamp  seconds, of this try
    webhook-signature  v1,<base64 of HMAC-SHA256(secret, "id.timestamp.body")>, one per secret

A secret is `whsec_` and the base64 of 24 to 64 bytes. While one is being replaced, a message is
signed with all of them and verified with any of them. Pure: the time is an argument.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from penstock.base.errors import SettingsInvalid
from penstock.workflows.launch.errors import SignatureInvalid

TOLERANCE_S: Final = 300
_PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = range(24, 65)
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_:-]{1,128}")
_SECONDS: Final = re.compile(r"[0-9]{1,12}")
_SIGNATURES_MAX: Final = 16


def message_id(idempotency_key: str) -> str:
    """An id for `webhook-id`: the key itself, or its hash when it has a dot or odd characters.

    The signed text joins its parts with dots, so a dot inside a part could move the seams.
    """
    if _PLAIN_ID.fullmatch(idempotency_key):
        return idempotency_key
    return f"msg_{hashlib.sha256(idempotency_key.encode()).hexdigest()}"


def signed_headers(
    message: str, at: datetime, body: bytes, secrets: Sequence[str]
) -> dict[str, str]:
    """The three headers of a message; without a secret there is no signature among them."""
    seconds = str(int(at.timestamp()))
    headers = {"webhook-id": message, "webhook-timestamp": seconds}
    if secrets:
        signatures = (f"v1,{_sign(read_secret(s), message, seconds, body)}" for s in secrets)
        headers["webhook-signature"] = " ".join(signatures)
    return headers


def verify(
    headers: Mapping[str, str],
    body: bytes,
    secrets: Sequence[str],
    *,
    now: datetime,
    tolerance_s: int = TOLERANCE_S,
) -> str:
    """The message's id, once its signature and its age are right; SignatureInvalid otherwise."""
    given = {name.lower(): value for name, value in headers.items()}
    message, seconds, signatures = (
        given.get(f"webhook-{part}", "") for part in ("id", "timestamp", "signature")
    )
    if not message or not signatures or not _SECONDS.fullmatch(seconds):
        raise SignatureInvalid("expected webhook-id, -timestamp and -signature, found less")
    if abs(now.timestamp() - int(seconds)) > tolerance_s:
        raise SignatureInvalid(f"expected a timestamp within {tolerance_s} s, found another")
    said = [s[3:].encode() for s in signatures.split(" ")[:_SIGNATURES_MAX] if s.startswith("v1,")]
    keys = [read_secret(secret) for secret in secrets]
    # Every pair is compared, in constant time each: how long it takes says nothing.
    matches = [
        hmac.compare_digest(_sign(key, message, seconds, body).encode(), signature)
        for key in keys
        for signature in said
    ]
    if not any(matches):
        raise SignatureInvalid("expected a signature by a known secret, found none")
    return message


def read_secret(secret: str) -> bytes:
    """The bytes of a secret; SettingsInvalid when it is none, without repeating it."""
    try:
        key = base64.b64decode(secret.strip().removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) not in _SECRET_BYTES:
        raise SettingsInvalid(
            "expected a webhook secret of 24 to 64 bytes in base64 after `whsec_`, found another",
            remedy="Make one: `whsec_` and the base64 of 32 random bytes.",
        )
    return key


def _sign(key: bytes, message: str, seconds: str, body: bytes) -> str:
    signed = hmac.digest(key, f"{message}.{seconds}.".encode() + body, "sha256")
    return base64.b64encode(signed).decode()
