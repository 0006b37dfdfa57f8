"""Turn OpenTelemetry's span context into the one text that W3C makes of it, and back.

    {"traceId": "4bf9…", "spanId": "00f0…"}  ⇄  00-4bf9…-00f0…-01

Without `traceFlags` the span counts as sampled: who hands on its ids has recorded it.
"""

from __future__ import annotations

import re
from typing import Final

from penstock.envelope.envelope import JsonObject, JsonValue

_PARENT: Final = re.compile(
    r"00-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})", re.ASCII
)
_SAMPLED: Final = "01"


def traceparent_of(context: JsonValue) -> str | None:
    """The W3C traceparent of a span context; None when it is not a whole one."""
    if not isinstance(context, dict):
        return None
    trace, span = context.get("traceId"), context.get("spanId")
    text = f"00-{trace}-{span}-{context.get('traceFlags', _SAMPLED)}"
    return text if _PARENT.fullmatch(text) else None


def context_of(traceparent: str) -> JsonObject:
    """The span context that a traceparent stands for; nothing when it is none."""
    found = _PARENT.fullmatch(traceparent)
    if found is None:
        return {}
    context: JsonObject = {"traceId": found[1], "spanId": found[2]}
    return context if found[3] == _SAMPLED else {**context, "traceFlags": found[3]}
