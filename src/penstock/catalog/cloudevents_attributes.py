"""Name the attributes of CloudEvents 1.0 and say which of them are fields of ours.

`catalog.cloudevents` is the dialect; this page is its vocabulary and the grammar of its values.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from penstock.envelope.envelope import JsonValue, Severity

# Attribute of theirs, field of ours, and nothing to change on the way.
SAME: Final = {
    "id": "id",
    "source": "source",
    "type": "type",
    "time": "occurredAt",
    "data": "payload",
    "correlationid": "correlationId",
    "causationid": "causationId",
    "traceparent": "traceparent",
    "tenantid": "tenantId",
}
READ_OTHERWISE: Final = frozenset(
    ("specversion", "datacontenttype", "dataschema", "expirytime", "tags", "metadata")
)
_CANNOT_HONOUR: Final = "expected no data classification, found one; it cannot be honoured here"
REFUSED: Final = {
    "data_base64": "expected JSON in `data`, found binary content in `data_base64`",
    "dataclassification": _CANNOT_HONOUR,
    "dataregulation": _CANNOT_HONOUR,
    "datacategory": _CANNOT_HONOUR,
}
# What only we say of a stored event; beside `recordedby` it is about the record, not the event.
RECORDED_BY: Final = "penstock"
RECORD: Final = frozenset(
    ("recordedby", "sequence", "recordedtime", "severitytext", "severitynumber")
)
RECORD_FIELDS: Final = {"schemaversion": "schemaVersion", "ttl": "ttl"}
# Severity numbers of OpenTelemetry, which the extension takes over.
SEVERITY_NUMBER: Final = {
    Severity.CRITICAL: 21,
    Severity.ERROR: 17,
    Severity.WARNING: 13,
    Severity.INFO: 9,
    Severity.DEBUG: 5,
}
JSON_TYPE: Final = "application/json"

_TEXTS: Final = frozenset(
    ("subject", "datacontenttype", "dataschema", "sequence", "recordedtime", "severitytext")
)
# A publisher's extension never speaks in the place of a field.
_FIELDS: Final = (
    frozenset(SAME) | frozenset(REFUSED) | frozenset(RECORD_FIELDS) | READ_OTHERWISE
) - _TEXTS | {"recordedby"}
_NAME: Final = re.compile(r"[a-z0-9]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_JSON_KIND: Final = re.compile(
    r"(?:application|text)/(?:[a-z0-9!#$&^_.+-]+\+)?json\s*(?:;.*)?", re.IGNORECASE
)
_VERSION_AT_END: Final = re.compile(r".*/([1-9][0-9]{0,9})", re.DOTALL)


def is_name(text: str) -> bool:
    """Whether `text` can be the name of an attribute."""
    return _NAME.fullmatch(text) is not None


def is_json_type(value: JsonValue) -> bool:
    """Whether a media type is one of JSON's."""
    return isinstance(value, str) and _JSON_KIND.fullmatch(value) is not None


def is_extension(name: str, value: JsonValue) -> bool:
    """Whether a publisher's extension can be written as an attribute again."""
    if not is_name(name) or name in _FIELDS or (name in _TEXTS and not isinstance(value, str)):
        return False
    if name == "datacontenttype":
        return is_json_type(value)
    if isinstance(value, str):
        return value != "" and _CONTROL.search(value) is None
    return isinstance(value, int) and -(2**31) <= value < 2**31


def schema_uri(event_type: object, version: object) -> str:
    """The address of a registered schema, as `dataschema` names it."""
    return f"penstock:/schemas/{event_type}/{version}"


def version_of(schema: JsonValue) -> int | None:
    """The version that a schema's address ends in, if it does."""
    found = _VERSION_AT_END.fullmatch(schema) if isinstance(schema, str) else None
    return None if found is None else int(found[1])


def header_text(value: str) -> str | None:
    """The text of a `ce-` header: percent-encoded UTF-8, perhaps in quotes; None if it is not."""
    if len(value) > 1 and value.startswith('"') and value.endswith('"'):
        value = re.sub(r"\\(.)", r"\1", value[1:-1])
    try:
        text = unquote(value, errors="strict")
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else text


def as_attribute(json: bytes) -> str:
    """JSON as the text of an attribute, which may hold no control characters."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", json.decode())
