"""Hold preparation to its promises: what was said wins, what was left out is filled in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from penstock.base.errors import EventRefused, Fault
from penstock.base.ids import uuid7
from penstock.envelope.context import METADATA_KEY, WorkflowContext
from penstock.envelope.envelope import Envelope, JsonObject
from penstock.publish.cause import Cause
from penstock.publish.prepare import Fields, Surroundings, claim, fill
from penstock.registry.declare import EventType, Payload

NOW = datetime(2026, 1, 31, 10, 30, 0, 123456, tzinfo=UTC)
CONTEXT = WorkflowContext(
    workflow_definition_id="wf-1",
    workflow_run_id="run-1",
    workflow_run_step_id="step-1",
    job_run_id="job-1",
    job_slug="load",
)


class RecordUpdated(Payload):
    """A record's content changed."""

    namespace: str
    record_key: str
    version: int = 1
    seen_at: datetime | None = None


UPDATED = EventType("metastore.record.updated", RecordUpdated, version=3)


def filled(event: JsonObject, **around: Any) -> JsonObject:
    return fill(event, Surroundings(now=NOW, new_id="new-id", **around))


def test_keyword_arguments_become_the_wire_form() -> None:
    fields: Fields = {
        "id": "evt-1",
        "source": "metastore.api",
        "payload": {"n": 1},
        "tags": {"mode": "test"},
        "metadata": {"m": [1]},
        "occurred_at": NOW,
        "correlation_id": "req-1",
        "causation_id": "evt-0",
        "traceparent": "00-1-2-01",
        "ttl_ms": 5,
        "schema_version": 2,
        "tenant_id": "acme",
    }

    assert claim("a.b", fields) == {
        "type": "a.b",
        "id": "evt-1",
        "source": "metastore.api",
        "payload": {"n": 1},
        "tags": {"mode": "test"},
        "metadata": {"m": [1]},
        "occurredAt": "2026-01-31T10:30:00.123456+00:00",
        "correlationId": "req-1",
        "causationId": "evt-0",
        "traceparent": "00-1-2-01",
        "ttl": 5,
        "schemaVersion": 2,
        "tenantId": "acme",
    }


def test_every_field_has_a_wire_name() -> None:
    said = claim("a.b", dict.fromkeys(Fields.__annotations__, "x"))  # type: ignore[arg-type]

    assert len(said) == len(Fields.__annotations__) + 1


def test_a_misspelt_keyword_is_the_callers_mistake() -> None:
    with pytest.raises(TypeError, match=r"expected some of .*correlation_id.*, found corelation"):
        claim("a.b", {"corelation": "x"})  # type: ignore[typeddict-unknown-key]


def test_none_means_not_said_except_for_a_payload() -> None:
    assert claim("a.b", {"source": None, "payload": None, "id": None}) == {
        "type": "a.b",
        "payload": None,
    }


def test_a_ready_event_goes_as_it_is() -> None:
    event = {"type": "a.b", "source": "s", "payload": [1], "unknown": True}

    assert claim(event, {}) == event


def test_keywords_beside_a_ready_event_win() -> None:
    event = {"type": "a.b", "source": "s", "correlationId": "old"}

    assert claim(event, {"correlation_id": "new"})["correlationId"] == "new"


def test_an_envelope_that_was_read_can_be_published_again() -> None:
    envelope = Envelope(id="evt-1", type="a.b", source="s", occurred_at=NOW, payload={"n": 1})

    said = claim(envelope, {})

    assert (said["id"], said["type"], said["payload"]) == ("evt-1", "a.b", {"n": 1})


def test_a_typed_payload_is_written_by_its_wire_names_with_its_version() -> None:
    payload = RecordUpdated(namespace="flags", record_key="a", seen_at=NOW)

    said = claim(UPDATED, {"payload": payload})

    assert said["type"] == "metastore.record.updated"
    assert said["schemaVersion"] == 3
    assert said["payload"] == {
        "namespace": "flags",
        "recordKey": "a",
        "version": 1,
        "seenAt": "2026-01-31T10:30:00.123456Z",
    }


def test_fields_that_the_type_does_not_declare_yet_are_kept() -> None:
    payload = RecordUpdated.model_validate({"namespace": "f", "recordKey": "a", "extraField": 7})

    said = claim(UPDATED, {"payload": payload})

    assert isinstance(said["payload"], dict)
    assert said["payload"]["extraField"] == 7


def test_a_mapping_is_read_through_the_model_of_its_type() -> None:
    said = claim(UPDATED, {"payload": {"namespace": "flags", "recordKey": "a"}})

    assert isinstance(said["payload"], dict)
    assert said["payload"]["version"] == 1


def test_a_mapping_that_does_not_fit_its_type_is_refused_with_every_fault() -> None:
    with pytest.raises(EventRefused) as caught:
        claim(UPDATED, {"payload": {"namespace": 1}})

    assert caught.value.reason == "payload_invalid"
    assert {fault.pointer: fault.detail for fault in caught.value.faults} == {
        "/payload/namespace": "expected text, found something else",
        "/payload/recordKey": "expected a required field, found nothing",
    }


def test_the_payload_of_another_type_is_refused() -> None:
    class Other(BaseModel):
        n: int

    with pytest.raises(EventRefused, match="expected RecordUpdated, found Other") as caught:
        claim(UPDATED, {"payload": Other(n=1)})

    assert caught.value.faults == (Fault("/payload", "expected RecordUpdated, found Other"),)


def test_a_payload_that_is_no_json_is_refused_with_its_place() -> None:
    with pytest.raises(EventRefused) as caught:
        claim("a.b", {"payload": {"x": [object()]}})

    assert caught.value.faults[0].pointer == "/payload/x/0"


@pytest.mark.parametrize(
    ("said", "publisher", "declared", "expected"),
    [
        ("mine", "publisher", ("declared",), "mine"),
        (None, "publisher", ("declared",), "publisher"),
        (None, None, ("declared",), "declared"),
        (None, None, ("one", "two"), None),
        (None, None, (), None),
    ],
)
def test_the_nearest_source_wins(
    said: str | None, publisher: str | None, declared: tuple[str, ...], expected: str | None
) -> None:
    event_type = EventType("a.b", Payload, sources=declared)

    assert claim(event_type, {"source": said}, source=publisher).get("source") == expected


def test_an_event_gets_an_id_and_its_time() -> None:
    event = filled({"type": "a.b"})

    assert event["id"] == "new-id"
    assert event["occurredAt"] == "2026-01-31T10:30:00.123Z"


def test_the_time_that_was_said_is_kept() -> None:
    assert filled({"occurredAt": "2020-01-01T00:00:00Z"})["occurredAt"] == "2020-01-01T00:00:00Z"


def test_the_same_id_published_again_says_the_same_thing_again() -> None:
    first = fill({"type": "a.b", "id": "order-7"}, Surroundings(NOW, uuid7()))
    later = fill({"type": "a.b", "id": "order-7"}, Surroundings(datetime.now(UTC), uuid7()))

    assert first == later


def test_an_event_inherits_from_its_cause() -> None:
    event = filled({"type": "a.b"}, cause=Cause("evt-0", "req-1"))

    assert (event["causationId"], event["correlationId"]) == ("evt-0", "req-1")


def test_a_cause_that_was_said_wins() -> None:
    said: JsonObject = {"causationId": "mine", "correlationId": "own"}

    event = filled(said, cause=Cause("evt-0", "req-1"))

    assert (event["causationId"], event["correlationId"]) == ("mine", "own")


def test_the_workflow_context_is_injected() -> None:
    event = filled({"metadata": {"k": 1}}, context=CONTEXT)

    assert event["metadata"] == {"k": 1, METADATA_KEY: CONTEXT.wire()}


def test_a_workflow_context_that_was_said_wins() -> None:
    event = filled({"metadata": {METADATA_KEY: "mine"}}, context=CONTEXT)

    assert event["metadata"] == {METADATA_KEY: "mine"}


def test_a_workflow_context_over_two_kilobytes_is_left_out() -> None:
    large = CONTEXT.model_copy(update={"job_slug": "x" * 3000})

    assert METADATA_KEY not in str(filled({}, context=large))


def test_metadata_that_is_no_object_is_left_for_the_check_to_refuse() -> None:
    assert filled({"metadata": 7}, context=CONTEXT)["metadata"] == 7


def test_filling_changes_no_event_but_its_own() -> None:
    event: JsonObject = {"type": "a.b", "metadata": {}}

    filled(event, context=CONTEXT, cause=Cause("a", "b"))

    assert event == {"type": "a.b", "metadata": {}}
