"""Frames have the names and shapes of the contract, and each event is written once."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import Envelope, JsonObject, Severity, Stored
from penstock.stream import frames
from penstock.stream.frames import Form, Frame, Parcel, Style

AT = datetime(2026, 1, 31, 10, 30, tzinfo=UTC)


def stored(event_type: str = "metastore.record.updated", position: int = 7) -> Stored:
    envelope = Envelope("e-1", event_type, "metastore.api", AT, {"key": "k"})
    return Stored(position, envelope, AT, Severity.INFO, "default", None, b"")


def seen(stored: Stored, *, upcast: bool = True) -> JsonObject:
    derived: JsonObject = {"type": stored.envelope.type, "payload": {"derived": True}}
    said: JsonObject = {"id": stored.envelope.id, "payload": stored.envelope.payload}
    return {**said, "position": str(stored.position), "derived": derived}


def bare(stored: Stored, *, upcast: bool = True) -> JsonObject:
    return {"id": stored.envelope.id, "derived": None}


def read(frame: Frame) -> JsonObject:
    found: JsonObject = json.loads(frame.body)
    return found


def test_the_general_frame_carries_the_whole_view() -> None:
    (frame,) = Parcel(stored("order.placed"), seen, AT).entry(Form.NATIVE).frames

    assert read(frame) == {
        "type": "workflow.event.received",
        "data": {"event": seen(stored("order.placed"))},
        "emittedAt": "2026-01-31T10:30:00.000Z",
    }
    assert frame.position == 7


@pytest.mark.parametrize(
    "event_type",
    [
        "asset.produced",
        "asset.expired",
        "metastore.record.created",
        "metastore.record.deleted",
        "timestore.partition.created",
        "timestore.dataset.export.completed",
        "filestore.node.uploaded",
        "filestore.command.completed",
    ],
)
def test_a_known_type_has_its_own_frame_before_the_general_one(event_type: str) -> None:
    typed, general = Parcel(stored(event_type), seen, AT).entry(Form.NATIVE).frames

    assert read(typed) == {
        "type": event_type,
        "data": {"derived": True},
        "emittedAt": "2026-01-31T10:30:00.000Z",
    }
    assert typed.position is None, "a client must not resume after half an event"
    assert general.type == "workflow.event.received"


@pytest.mark.parametrize(
    "event_type", ["asset.deleted", "metastore.schema.changed", "timestoreX.a"]
)
def test_another_type_has_the_general_frame_only(event_type: str) -> None:
    assert len(Parcel(stored(event_type), seen, AT).entry(Form.NATIVE).frames) == 1


def test_a_known_type_whose_payload_does_not_fit_has_the_general_frame_only() -> None:
    assert len(Parcel(stored("asset.produced"), bare, AT).entry(Form.NATIVE).frames) == 1


def test_an_event_is_written_once_for_everybody() -> None:
    views = []

    def view(event: Stored, *, upcast: bool = True) -> JsonObject:
        views.append(event)
        return seen(event)

    parcel = Parcel(stored(), view, AT)

    assert parcel.entry(Form.NATIVE) is parcel.entry(Form.NATIVE)
    assert len(views) == 1


def test_whoever_wants_payloads_as_stored_gets_frames_of_their_own() -> None:
    def view(event: Stored, *, upcast: bool = True) -> JsonObject:
        return {"upcast": upcast}

    parcel = Parcel(stored(), view, AT)

    (native,), (as_stored,) = (parcel.entry(form).frames for form in (Form.NATIVE, Form.AS_STORED))
    assert read(native)["data"] == {"event": {"upcast": True}}
    assert read(as_stored)["data"] == {"event": {"upcast": False}}


def test_under_cloudevents_an_event_is_one_structured_cloudevent() -> None:
    (frame,) = Parcel(stored(), seen, AT).entry(Form.CLOUDEVENTS).frames
    event = read(frame)

    assert event["specversion"] == "1.0"
    assert event["type"] == "metastore.record.updated"
    assert event["data"] == {"key": "k"}


def test_the_size_of_an_entry_is_what_is_sent() -> None:
    entry = Parcel(stored(), seen, AT).entry(Form.NATIVE)

    assert entry.size == sum(len(frame.body) for frame in entry.frames)


def test_the_acknowledgement_names_the_time_and_the_position() -> None:
    frame = frames.ack(Form.NATIVE, AT, 41)

    assert read(frame) == {
        "type": "connection.ack",
        "data": {"now": "2026-01-31T10:30:00.000Z", "position": "41"},
        "emittedAt": "2026-01-31T10:30:00.000Z",
    }
    assert frame.position == 41


def test_a_pong_names_the_time() -> None:
    assert read(frames.pong(Form.NATIVE, AT))["data"] == {"now": "2026-01-31T10:30:00.000Z"}


def test_lagged_says_from_where_the_stream_goes_on() -> None:
    frame = frames.lagged(Form.NATIVE, AT, after=12, dropped=256, path="/ws")

    assert read(frame)["data"] == {"from": "12", "dropped": 256, "resume": "/ws?after=12"}


def test_caught_up_heartbeat_and_filter_name_a_position() -> None:
    assert read(frames.caught_up(Form.NATIVE, AT, 9))["data"] == {"position": "9"}
    assert read(frames.heartbeat(Form.NATIVE, AT, 9))["data"]["position"] == "9"  # type: ignore[index, call-overload]
    assert read(frames.filter_applied(Form.NATIVE, AT, 9))["data"] == {"after": "9"}


def test_an_error_carries_code_and_remedy() -> None:
    problem = QueryInvalid("expected a, found b", parameter="type", remedy="Do c.")

    assert read(frames.error(Form.NATIVE, AT, problem))["data"] == {
        "code": "query_invalid",
        "detail": "expected a, found b",
        "remedy": "Do c.",
        "errors": [{"pointer": "type", "detail": "expected a, found b"}],
    }


def test_under_cloudevents_frames_about_the_stream_are_cloudevents_too() -> None:
    event = read(frames.ack(Form.CLOUDEVENTS, AT, 41))

    assert event["specversion"] == "1.0"
    assert event["type"] == "penstock.stream.connection.ack"
    assert event["source"] == "penstock.stream"
    assert event["id"]
    assert event["data"] == {"now": "2026-01-31T10:30:00.000Z", "position": "41"}


@pytest.mark.parametrize("form", [Form(style) for style in Style])
def test_no_frame_contains_a_line_break(form: Form) -> None:
    event = stored()
    event = Stored(
        7, Envelope("e", "a.b", "s", AT, {"text": "a\nb\r\u2028"}), AT, Severity.INFO, "default",
        None, b"",
    )  # fmt: skip

    def view(event: Stored, *, upcast: bool = True) -> JsonObject:
        return {"payload": event.envelope.payload}

    for frame in Parcel(event, view, AT).entry(form).frames:
        assert b"\n" not in frame.body
        assert b"\r" not in frame.body
