"""Speak CloudEvents 1.0 beside our own envelope: read them, and write stored events as them.

    structured ────────────────────▶ to_native ──▶ native wire form ──▶ envelope.check.read
    binary     ──▶ from_headers ──▶ structured
    Stored     ──▶ from_stored  ──▶ structured, which to_native reads back to the same wire form

What has no field of ours lands in `metadata.ext` and comes out again as the attribute it was. What
the store adds (position, time of arrival, severity) is told apart by `recordedby: penstock`: read
back, it is not mistaken for something the publisher said. A batch is a list of structured events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from penstock.base.clock import format_instant, parse_instant
from penstock.base.errors import Fault, NotInProfile
from penstock.catalog.cloudevents_attributes import (
    JSON_TYPE,
    READ_OTHERWISE,
    RECORD,
    RECORD_FIELDS,
    RECORDED_BY,
    REFUSED,
    SAME,
    SEVERITY_NUMBER,
    as_attribute,
    header_text,
    is_extension,
    is_json_type,
    is_name,
    schema_uri,
    version_of,
)
from penstock.envelope.check import FAULTS_MAX, write
from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.envelope.limits import DEPTH_MAX, NODES_MAX
from penstock.envelope.profile import check_shape

_OBJECTS: Final = ("tags", "metadata")
_SEQUENCE_DIGITS: Final = 19


class _Refused(Exception):
    """An attribute that cannot be read; it never leaves this module."""

    def __init__(self, pointer: str, detail: str) -> None:
        super().__init__(detail)
        self.fault = Fault(pointer, detail)


def recognises(tree: JsonObject) -> bool:
    """Whether `tree` says that it is a CloudEvent; the native form has no such key."""
    return "specversion" in tree


def to_native(tree: JsonObject) -> JsonObject | tuple[Fault, ...]:
    """The native wire form of a structured CloudEvent, or what is wrong with its attributes."""
    # The JSON format treats an attribute that is null as one that is not there.
    said = {name: value for name, value in tree.items() if value is not None or name == "data"}
    faults = tuple(_attribute_faults(said))
    if faults:
        return faults[:FAULTS_MAX]
    try:
        native = _native(said)
    except _Refused as refused:
        return (refused.fault,)
    try:
        if any(isinstance(said.get(name), str) for name in _OBJECTS):
            # As text they were one value each; as objects they count in full.
            check_shape(encode(native), depth_max=DEPTH_MAX, nodes_max=NODES_MAX)
    except NotInProfile as error:
        return (Fault("", error.detail),)
    return native


def from_headers(headers: Mapping[str, str], body: bytes) -> JsonObject | tuple[Fault, ...]:
    """The structured form of a binary one: `ce-` headers beside a JSON body.

    NotInProfile when the body is not in the strict JSON profile.
    """
    tree: JsonObject = {}
    faults: list[Fault] = []
    for header, value in headers.items():
        name = _attribute_of(header.lower())
        if name is None:
            continue
        text = header_text(value)
        if text is None:
            faults.append(Fault(f"/{name}", "expected percent-encoded UTF-8, found other bytes"))
        elif name in tree:
            faults.append(Fault(f"/{name}", "expected the header once, found it again"))
        elif name == "data":
            faults.append(Fault("/data", "expected the data in the body, found it in a header"))
        else:
            tree[name] = text
    faults += _media_faults(tree)
    if faults:
        return tuple(faults[:FAULTS_MAX])
    if body:
        tree["data"] = _data(body, len(tree))
    return tree


def from_stored(stored: Stored) -> JsonObject:
    """A stored event as a valid structured CloudEvent, with what the store knows about it."""
    wire = write(stored.envelope)
    event: JsonObject = {
        "specversion": "1.0",
        **{theirs: wire[ours] for theirs, ours in SAME.items() if ours in wire},
        **_time_to_live(stored),
        **{name: as_attribute(encode(wire[name])) for name in _OBJECTS if wire[name]},
        "recordedby": RECORDED_BY,
    }
    # A publisher's own `sequence` or `dataschema` is passed on as it came.
    return _store_says(stored) | _extensions_of(stored) | event


def _attribute_faults(said: JsonObject) -> Iterator[Fault]:
    if said.get("specversion") != "1.0":
        yield Fault("/specversion", "expected '1.0', found another version or none")
    for name, value in said.items():
        if name in REFUSED:
            yield Fault(f"/{name}", REFUSED[name])
        elif not is_name(name):
            detail = f"expected an attribute of lower-case letters and digits, found {name[:80]!r}"
            yield Fault("", detail)
        elif name != "data" and name not in _OBJECTS and not isinstance(value, str | int):
            yield Fault(f"/{name}", "expected a string, a boolean or an integer, found another")
    yield from _media_faults(said)


def _media_faults(said: JsonObject) -> Iterator[Fault]:
    media = said.get("datacontenttype", JSON_TYPE)
    if not is_json_type(media):
        yield Fault("/datacontenttype", f"expected {JSON_TYPE}, found {str(media)[:80]!r}")


def _native(said: JsonObject) -> JsonObject:
    native = {ours: said[theirs] for theirs, ours in SAME.items() if theirs in said}
    objects = {name: _object_said(said, name) for name in _OBJECTS}
    objects["metadata"] = _with_extensions(objects["metadata"], said)
    if "expirytime" in said:
        native["ttl"] = _ttl(said)
    if _is_record(said):
        # `from_stored` leaves out what is empty; the wire form of a stored event does not.
        objects = {name: value or {} for name, value in objects.items()}
        native |= {
            ours: _integer(said[name]) for name, ours in RECORD_FIELDS.items() if name in said
        }
    elif (version := version_of(said.get("dataschema"))) is not None:
        native["schemaVersion"] = version
    return native | {name: value for name, value in objects.items() if value is not None}


def _is_record(said: JsonObject) -> bool:
    return said.get("recordedby") == RECORDED_BY


def _is_plain_text(value: JsonValue) -> bool:
    """Whether `tags` or `metadata` is somebody's own extension and no object of ours."""
    return isinstance(value, str) and not value.startswith("{")


def _object_said(said: JsonObject, name: str) -> JsonObject | None:
    """An object of ours that came as an object or as JSON text."""
    value = said.get(name)
    if value is None or _is_plain_text(value):
        return None
    if isinstance(value, str):
        try:
            value = decode(value.encode(), depth_max=DEPTH_MAX - 1)
        except NotInProfile as error:
            raise _Refused(f"/{name}", error.detail) from None
    if not isinstance(value, dict):
        raise _Refused(f"/{name}", "expected an object as JSON text, found another value")
    return value


def _with_extensions(metadata: JsonObject | None, said: JsonObject) -> JsonObject | None:
    """`metadata` with `ext` for what we have no field for."""
    known = SAME.keys() | READ_OTHERWISE
    if _is_record(said):
        known |= RECORD | RECORD_FIELDS.keys()
    extensions = {name: value for name, value in said.items() if name not in known}
    extensions |= {name: said[name] for name in _OBJECTS if _is_plain_text(said.get(name))}
    if said.get("datacontenttype", JSON_TYPE) != JSON_TYPE:
        extensions["datacontenttype"] = said["datacontenttype"]
    ours = schema_uri(said.get("type"), said.get("schemaversion"))
    if "dataschema" in said and not (_is_record(said) and said["dataschema"] == ours):
        extensions["dataschema"] = said["dataschema"]
    if not extensions:
        return metadata
    kept = (metadata or {}).get("ext", {})
    if not isinstance(kept, dict):
        raise _Refused("/metadata/ext", "expected an object, found another value")
    return {**(metadata or {}), "ext": {**extensions, **kept}}


def _ttl(said: JsonObject) -> int:
    if "time" not in said:
        raise _Refused("/expirytime", "expected `time` beside it, found none")
    left = _instant(said, "expirytime") - _instant(said, "time")
    if left <= timedelta():
        raise _Refused("/expirytime", "expected an instant after `time`, found an earlier one")
    return -(-left // timedelta(milliseconds=1))


def _instant(said: JsonObject, name: str) -> datetime:
    try:
        return parse_instant(str(said[name]))
    except ValueError as error:
        raise _Refused(f"/{name}", str(error)) from None


def _integer(value: JsonValue) -> JsonValue:
    """A number that had to travel as text."""
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else value


def _attribute_of(header: str) -> str | None:
    if header == "content-type":
        return "datacontenttype"
    return header[3:] if header.startswith("ce-") else None


def _data(body: bytes, attributes: int) -> JsonValue:
    """The body, within what the attributes around it leave of the profile."""
    try:
        return decode(body, nodes_max=NODES_MAX - attributes - 1, depth_max=DEPTH_MAX - 1)
    except NotInProfile as error:
        pointer = f"/data{error.pointer}"
        raise NotInProfile(error.reason, error.detail, pointer=pointer) from None


def _store_says(stored: Stored) -> JsonObject:
    says: JsonObject = {
        "datacontenttype": JSON_TYPE,
        "sequence": str(stored.position).zfill(_SEQUENCE_DIGITS),
        "recordedtime": format_instant(stored.received_at),
        "severitytext": stored.severity.upper(),
        "severitynumber": SEVERITY_NUMBER[stored.severity],
    }
    version = stored.envelope.schema_version
    if version is not None:
        says["dataschema"] = schema_uri(stored.envelope.type, version)
        says["schemaversion"] = version
    return says


def _extensions_of(stored: Stored) -> JsonObject:
    extensions = stored.envelope.metadata.get("ext")
    if not isinstance(extensions, dict):
        return {}
    return {name: value for name, value in extensions.items() if is_extension(name, value)}


def _time_to_live(stored: Stored) -> JsonObject:
    ttl = stored.envelope.ttl_ms
    if ttl is None:
        return {}
    at = parse_instant(format_instant(stored.envelope.occurred_at))  # as `time` says it
    try:
        return {"expirytime": format_instant(at + timedelta(milliseconds=ttl))}
    except OverflowError:
        return {"ttl": str(ttl)}  # it outlives the calendar
