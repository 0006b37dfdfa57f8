"""The checkboxes of seed 002 about schema, vocabulary, validation and metadata, one test each.

Those about storage, queries, versions and documents are in tests/store/test_seed_002.py.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from penstock.base.clock import format_instant
from penstock.base.ids import is_uuid7, uuid7
from penstock.catalog import domain_event
from penstock.catalog.development import code, issues
from penstock.catalog.development.fields import STANDARD_TAGS
from penstock.catalog.development.vocabulary import DEVELOPMENT
from penstock.catalog.vocabularies import ALL
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject
from penstock.envelope.names import type_fault
from penstock.ingress.enrich import enrichment
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Accepted, Arrival, Reason, Rejected, Verdict
from penstock.registry.book import RegistryBook
from penstock.registry.declare import Payload
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.on_disk import read_contracts
from penstock.registry.registry import Registry
from penstock.registry.schema import PayloadCheck, check_payload, schema_hash

CONTRACTS = Path(__file__).parents[2] / "contracts"
ARRIVAL = Arrival(datetime(2026, 3, 1, tzinfo=UTC), "")


@pytest.fixture(scope="module")
def registry() -> Registry:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    return book.current()


def event(**changes: Any) -> JsonObject:
    """A DomainEvent as the interface of the seed has it."""
    return {
        "id": uuid7(),
        "type": "CODE.MERGED.SUCCESS",
        "timestamp": "2026-01-31T10:30:00.123Z",
        "tags": {"prId": "108", "mode": "dev"},
        "metadata": {"workflowVersion": "1.0.0", "eventSource": "system"},
        "data": {"mergeSha": "b41d0aa"},
        **changes,
    }


def judged(registry: Registry, **changes: Any) -> Verdict:
    return judge(encode(event(**changes)), ARRIVAL, registry)


def accepted(registry: Registry, **changes: Any) -> Accepted:
    verdict = judged(registry, **changes)
    assert isinstance(verdict, Accepted), verdict
    return verdict


# ------------------------------------------------------------------ core event schema


def test_a_domain_event_has_all_required_fields_id_type_timestamp_tags_metadata_data(
    registry: Registry,
) -> None:
    assert set(domain_event.REQUIRED) == set(event())
    for name in event():
        rest = {key: value for key, value in event().items() if key != name}
        assert isinstance(judge(encode(rest), ARRIVAL, registry), Rejected), name
    accepted(registry)


def test_event_types_follow_the_naming_convention_aggregate_action_status() -> None:
    for declared in DEVELOPMENT.events:
        assert declared.name == declared.name.upper()
        assert 2 <= len(declared.name.split(".")) <= 4
        assert type_fault(declared.name) is None
    for wrong in ("ISSUE", "ISSUE..SUCCESS", "Issue.Assigned.Success", "ISSUE.ASSIGNED.", "A B.C"):
        assert type_fault(wrong) is not None


def test_the_structure_of_an_event_is_validated_by_json_schema(registry: Registry) -> None:
    assert "dialects/domain-event.1.json" in read_contracts(CONTRACTS)
    verdict = judged(registry, data={"mergeStrategy": "octopus"})

    assert isinstance(verdict, Rejected)
    assert (verdict.reason, verdict.pointer) == (Reason.PAYLOAD_INVALID, "/data/mergeStrategy")


def test_event_ids_are_uuid_v7_and_sort_by_time() -> None:
    ids = [uuid7() for _ in range(1_000)]
    ms = int(ids[0].replace("-", "")[:12], 16)

    assert all(is_uuid7(each) for each in ids)
    assert ids == sorted(set(ids))
    assert abs(ms - time.time() * 1000) < 60_000


def test_timestamps_are_iso_8601_with_millisecond_precision(registry: Registry) -> None:
    at = accepted(registry, timestamp="2026-01-31T12:30:00.123+02:00").envelope.occurred_at

    assert format_instant(at) == "2026-01-31T10:30:00.123Z"


# ------------------------------------------------------------------ tagging


def test_different_event_types_have_standard_tag_sets(registry: Registry) -> None:
    sets = {declared.name: set(declared.tags) for declared in DEVELOPMENT.events}

    assert all(set(STANDARD_TAGS) <= tags for tags in sets.values())
    assert sets["WORKFLOW.STARTED"] - set(STANDARD_TAGS) == {"workflowName"}
    assert sets["GATE.BUILD.STARTED"] - set(STANDARD_TAGS) == {"buildId"}
    assert sets["PLUGIN.INSTALLED.SUCCESS"] - set(STANDARD_TAGS) == {"pluginName"}


def test_custom_tags_are_supported_for_extensibility(registry: Registry) -> None:
    tags = {"prId": "108", "sprint": "7", "x.y-z_1": "any text, ☃ too"}

    assert accepted(registry, tags=tags).envelope.tags == tags


# ------------------------------------------------------------------ type registry


def test_event_types_for_all_system_operations_are_defined(registry: Registry) -> None:
    aggregates = {declared.name.split(".")[0] for declared in DEVELOPMENT.events}

    assert aggregates == {"ISSUE", "CODE", "WORKFLOW", "GATE", "PLUGIN", "PROVIDER", "PLATFORM"}
    assert {declared.name for declared in DEVELOPMENT.events} <= set(registry.types())


def test_event_types_are_validated_and_can_be_enumerated(registry: Registry) -> None:
    verdict = judged(registry, type="CODE.MERGED.SUCESS")

    assert isinstance(verdict, Rejected)
    assert verdict.reason == Reason.TYPE_UNKNOWN
    assert registry.nearest("CODE.MERGED.SUCESS") == "CODE.MERGED.SUCCESS"
    assert "CODE.MERGED.SUCCESS" in registry.types()


def test_event_type_constants_exist_for_every_type() -> None:
    assert issues.ISSUE_ASSIGNED.name == "ISSUE.ASSIGNED.SUCCESS"
    assert code.EVENTS == (
        code.CODE_GENERATED,
        code.CODE_GENERATION_FAILED,
        code.CODE_REVIEW_REQUESTED,
        code.CODE_MERGED,
    )


def test_event_types_have_builder_utilities(registry: Registry) -> None:
    payload = code.CodeMerged(pr_id="108", merged_by="ben")
    built = code.CODE_MERGED.event(payload, id=uuid7(), source="system")

    verdict = judge(encode(built), ARRIVAL, registry)

    assert isinstance(verdict, Accepted)
    assert code.CODE_MERGED.read(verdict.envelope) == payload


def test_json_schema_files_exist_for_validation_of_every_type() -> None:
    files = read_contracts(CONTRACTS)

    assert {f"development/{declared.name}.1.json" for declared in DEVELOPMENT.events} <= set(files)


def test_the_schema_of_the_event_itself_is_a_file_that_validates_it() -> None:
    fits = PayloadCheck(read_contracts(CONTRACTS)["dialects/domain-event.1.json"])

    assert fits.faults(event()) == ()
    for name in event():
        rest: JsonObject = {key: value for key, value in event().items() if key != name}
        assert fits.faults(rest) != (), name
    assert [fault.pointer for fault in fits.faults(event(tags={"prId": 1}))] == ["/tags/prId"]


def test_every_event_type_has_a_typed_interface() -> None:
    for declared in DEVELOPMENT.events:
        model = declared.payload
        assert issubclass(model, Payload)
        assert model.model_config.get("frozen")
        assert model.model_fields, declared.name
        assert all(field.annotation is not None for field in model.model_fields.values())


def test_the_event_type_registry_holds_every_type_with_its_version_and_schema_hash(
    registry: Registry,
) -> None:
    for declared in DEVELOPMENT.events:
        found = registry.find(declared.name, None)
        assert found is not None, declared.name
        assert (found.version, found.status) == (declared.version, "active")
        assert found.schema_hash == schema_hash(found.schema)


# ------------------------------------------------------------------ validation


def test_schema_validation_uses_a_json_schema_validator_and_the_type_s_own_schema(
    registry: Registry,
) -> None:
    found = registry.find("CODE.MERGED.SUCCESS", None)
    assert found is not None
    ours = {fault.pointer for fault in check_payload(found, {"mergeStrategy": 1, "prId": []})}
    theirs = jsonschema_rs.validator_for(found.schema).iter_errors({"mergeStrategy": 1, "prId": []})

    assert ours == {"/" + "/".join(map(str, each.instance_path)) for each in theirs}
    assert ours == {"/mergeStrategy", "/prId"}


def test_custom_validators_check_uuid_v7_and_timestamps(registry: Registry) -> None:
    for changes, pointer in (
        ({"id": "8f14e45f-ceea-467f-a0e6-3c9f1d2b7a10"}, "/id"),
        ({"timestamp": "2026-01-31T10:30:00"}, "/timestamp"),
        ({"timestamp": "2026-02-30T10:30:00Z"}, "/timestamp"),
    ):
        verdict = judged(registry, **changes)
        assert isinstance(verdict, Rejected)
        assert (verdict.reason, verdict.pointer) == (Reason.ENVELOPE_INVALID, pointer)


def test_a_validation_error_says_what_where_and_what_to_do(registry: Registry) -> None:
    verdict = judged(registry, tags={"prId": 108}, metadata={"eventSource": "system"})

    assert isinstance(verdict, Rejected)
    assert verdict.pointer == "/tags/prId"
    assert verdict.detail == "expected a string, found a number"
    assert verdict.remedy == "Correct the fields that `errors` names; see docs/events.md."


# ------------------------------------------------------------------ metadata


def test_metadata_has_a_structure_for_workflow_versioning(registry: Registry) -> None:
    said = accepted(registry, metadata={"workflowVersion": "2.0.0", "eventSource": "system"})
    promised = accepted(registry, type="WORKFLOW.STARTED", data={"workflowVersion": "3.1.0"})
    wrong = judged(registry, metadata={"workflowVersion": 2})

    assert said.envelope.metadata["workflowVersion"] == "2.0.0"
    assert promised.envelope.metadata["workflowVersion"] == "1.0.0", "what was said wins"
    assert isinstance(wrong, Rejected)


def test_the_event_source_is_tracked_system_versus_plugin(registry: Registry) -> None:
    plugin = accepted(registry, metadata={"eventSource": "plugin"}).envelope
    silent = accepted(registry, metadata={}).envelope

    assert (plugin.source, plugin.metadata["eventSource"]) == ("plugin", "plugin")
    assert (silent.source, silent.metadata["eventSource"]) == ("system", "system")


def test_correlation_ids_are_supported_for_distributed_tracing(registry: Registry) -> None:
    metadata = {
        "correlationId": "corr-20260131103000-42-x1",
        "causationId": "cause-1",
        "traceContext": {
            "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
            "spanId": "00f067aa0ba902b7",
        },
    }

    envelope = accepted(registry, metadata=metadata).envelope

    assert envelope.correlation_id == "corr-20260131103000-42-x1"
    assert envelope.causation_id == "cause-1"
    assert envelope.traceparent == "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_metadata_enrichment_pipeline_fills_in_what_is_known(registry: Registry) -> None:
    payload = {"issueId": 42, "workflowVersion": "3.1.0", "workflowName": "resolve-issue"}
    least: JsonObject = {"type": "WORKFLOW.STARTED", "source": "plugin.lint", "payload": payload}

    verdict = judge(encode(least), ARRIVAL, registry)

    assert isinstance(verdict, Accepted)
    assert verdict.envelope.metadata == {"eventSource": "plugin", "workflowVersion": "3.1.0"}
    assert verdict.envelope.tags == {"issueId": "42", "workflowName": "resolve-issue"}
    assert is_uuid7(verdict.envelope.id)
    assert [step.order for step in enrichment().steps] == sorted(
        step.order for step in enrichment().steps
    )
