"""Build the frames of the live stream as bytes, each event once for everybody who gets it.

    connection.ack            first, with the position the stream goes on from
    asset.produced, …         the derived payload of a known type, before the general frame
    workflow.event.received   {"type", "data": {"event"}, "emittedAt"}: every event
    lagged, caught.up         the client fell behind; it has everything again
    retry.…                   an operator cancelled or forced a retry
    heartbeat, pong, filter.applied, error

Under the subprotocol `cloudevents.json` each text frame is one structured CloudEvent, as stored;
what is about the stream itself then is a CloudEvent from `penstock.stream`. Personal data is masked
in every form but those of readers who may see it. Pure: the time is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Protocol

from penstock.base.clock import format_instant
from penstock.base.errors import PenstockError
from penstock.base.ids import derived_id
from penstock.catalog.cloudevents import from_stored
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.store.privacy.show import opened

RECEIVED = "workflow.event.received"
HEARTBEAT = "heartbeat"
_TYPED = frozenset({"asset.produced", "asset.expired"})
_TYPED_PREFIXES = ("metastore.record.", "timestore.", "filestore.")


class Style(StrEnum):
    """How frames are written; the value is the WebSocket subprotocol that asks for it."""

    NATIVE = "penstock.v1.json"
    AS_STORED = "penstock.v1.as-stored.json"  # payloads of older versions are not upcasted
    CLOUDEVENTS = "cloudevents.json"


@dataclass(frozen=True, slots=True)
class Form:
    """How frames are written, and whether their reader sees personal data."""

    style: Style
    is_open: bool = False

    NATIVE: ClassVar[Form]
    AS_STORED: ClassVar[Form]
    CLOUDEVENTS: ClassVar[Form]


Form.NATIVE = Form(Style.NATIVE)
Form.AS_STORED = Form(Style.AS_STORED)
Form.CLOUDEVENTS = Form(Style.CLOUDEVENTS)


@dataclass(frozen=True, slots=True)
class Frame:
    """One text frame. Whoever has it may resume after `position`, when it names one."""

    type: str
    body: bytes
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """Everything sent for one event, in order."""

    position: int
    frames: tuple[Frame, ...]

    @property
    def size(self) -> int:
        """The bytes of all its frames."""
        return sum(len(frame.body) for frame in self.frames)


class View(Protocol):
    """Whatever shows a stored event to readers (`store.view.view` with a registry)."""

    def __call__(self, stored: Stored, /, *, upcast: bool = True) -> JsonObject: ...


class Parcel:
    """One event on its way to many clients; written once per form, when the first one wants it."""

    def __init__(self, stored: Stored, view: View, emitted_at: datetime) -> None:
        self.stored = stored
        self._view = view
        self._emitted_at = emitted_at
        self._entries: dict[Form, Entry] = {}

    def entry(self, form: Form) -> Entry:
        """The event's frames in one form; the same object for every client."""
        if form not in self._entries:
            self._entries[form] = Entry(self.stored.position, self._frames(form))
        return self._entries[form]

    def _frames(self, form: Form) -> tuple[Frame, ...]:
        position = self.stored.position
        stored = opened(self.stored) if form.is_open else self.stored
        view = self._view(stored, upcast=form.style is Style.NATIVE)
        if form.style is Style.CLOUDEVENTS:
            # The view decides what a reader sees of the payload, here as everywhere.
            envelope = stored.envelope._replace(payload=view["payload"])
            event = from_stored(replace(stored, envelope=envelope))
            return (Frame(RECEIVED, encode(event), position),)
        general = _native(RECEIVED, {"event": view}, self._emitted_at, position)
        typed = _typed(self.stored.envelope.type, view.get("derived"), self._emitted_at)
        return (general,) if typed is None else (typed, general)


def _typed(event_type: str, derived: JsonValue, at: datetime) -> Frame | None:
    """The frame of a known type. It names no position: the general frame is still to come."""
    known = event_type in _TYPED or event_type.startswith(_TYPED_PREFIXES)
    if not known or not isinstance(derived, dict):
        return None
    return _native(event_type, derived.get("payload"), at, None)


def ack(form: Form, at: datetime, position: int) -> Frame:
    """The first frame: the stream goes on after this position."""
    return _about(form, "connection.ack", _now(at) | {"position": str(position)}, at, position)


def pong(form: Form, at: datetime) -> Frame:
    """The answer to a ping."""
    return _about(form, "pong", _now(at), at)


def heartbeat(form: Form, at: datetime, position: int) -> Frame:
    """A sign of life, with how far the stream has come even if nothing matched."""
    return _about(form, HEARTBEAT, _now(at) | {"position": str(position)}, at, position)


def lagged(form: Form, at: datetime, *, after: int, dropped: int, path: str) -> Frame:
    """The client fell behind and its buffer was dropped; the stream goes on from `after`."""
    data: JsonObject = {
        "from": str(after),
        "dropped": dropped,
        "resume": f"{path}?after={after}",
    }
    return _about(form, "lagged", data, at, after)


def caught_up(form: Form, at: datetime, position: int) -> Frame:
    """Everything up to this position was sent; what follows is live."""
    return _about(form, "caught.up", {"position": str(position)}, at, position)


def filter_applied(form: Form, at: datetime, after: int) -> Frame:
    """Events after this position are chosen by the new filter."""
    return _about(form, "filter.applied", {"after": str(after)}, at)


def error(form: Form, at: datetime, problem: PenstockError) -> Frame:
    """Something was refused or does not work; the stream goes on."""
    data: JsonObject = {
        "code": problem.code,
        "detail": problem.detail,
        "remedy": problem.remedy,
        "errors": [{"pointer": f.pointer, "detail": f.detail} for f in problem.faults],
    }
    return _about(form, "error", data, at)


def notice(form: Form, at: datetime, kind: str, data: JsonObject) -> Frame:
    """Something that happened beside the log. It names no position: it is not in order with it."""
    return _about(form, kind, data, at)


def _now(at: datetime) -> JsonObject:
    return {"now": format_instant(at)}


def _about(
    form: Form, kind: str, data: JsonObject, at: datetime, position: int | None = None
) -> Frame:
    if form.style is not Style.CLOUDEVENTS:
        return _native(kind, data, at, position)
    event: JsonObject = {
        "specversion": "1.0",
        "id": derived_id(int(at.timestamp() * 1000), kind, encode(data)),
        "source": "penstock.stream",
        "type": f"penstock.stream.{kind}",
        "time": format_instant(at),
        "datacontenttype": "application/json",
        "data": data,
    }
    return Frame(kind, encode(event), position)


def _native(kind: str, data: JsonValue, at: datetime, position: int | None) -> Frame:
    body = encode({"type": kind, "data": data, "emittedAt": format_instant(at)})
    return Frame(kind, body, position)
