"""Make stored events of every kind that a dialect must be able to write and to read back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from penstock.envelope.check import read
from penstock.envelope.envelope import Envelope, JsonObject, Severity, Stored

NOW = datetime(2026, 1, 31, 10, 30, tzinfo=UTC)
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
_reference = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=20)
_scalar = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _text
_json = st.recursive(
    _scalar,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=6,
)
_hex = st.text("0123456789abcdef", min_size=16, max_size=16)
# The words that a dialect gives a meaning to, in the hands of a publisher who means another.
_said = st.fixed_dictionaries(
    {},
    optional={
        "eventSource": st.sampled_from(("system", "plugin", "robot", None, 7)),
        "workflowVersion": _json,
        "correlationId": _json,
        "causationId": _json,
        "version": st.sampled_from(("1.0.0", "1.2.3", "2.0.0", "0.0.0", "v7", 3, None)),
        "traceContext": st.one_of(
            _json,
            st.just({}),
            st.builds(lambda span: {"traceId": span * 2, "spanId": span}, _hex),
        ),
        "region": _json,
    },
)

envelopes = st.builds(
    Envelope,
    id=st.sampled_from(("e-1", "0197a3c2-5a00-7000-8000-000000000001")),
    type=st.sampled_from(("metastore.record.updated", "ISSUE.ASSIGNED.SUCCESS", "a.b")),
    source=st.sampled_from(("system", "plugin", "plugin.lint", "metastore.api")),
    occurred_at=st.integers(0, 10**9).map(lambda ms: NOW + timedelta(milliseconds=ms)),
    payload=_json,
    tags=st.dictionaries(st.sampled_from(("issueId", "a.b", "version")), _text, max_size=3),
    correlation_id=st.none() | _reference,
    causation_id=st.none() | _reference,
    traceparent=st.sampled_from((None, TRACE, TRACE[:-1] + "0")),
    ttl_ms=st.none() | st.integers(1, 10**9),
    metadata=_said,
    schema_version=st.none() | st.integers(1, 3),
    tenant_id=st.sampled_from(("default", "acme")),
)


def stored(envelope: Envelope) -> Stored:
    return Stored(42, envelope, NOW, Severity.INFO, "default", "hash", b"\0" * 32)


def read_back(native: JsonObject | tuple[Any, ...]) -> object:
    """The envelope of a native wire form, or what is wrong with it."""
    return read(native, accepted_at=NOW, fallback_id="", tenant_id=None)  # type: ignore[arg-type]
