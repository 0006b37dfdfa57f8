"""Every type of the platform vocabulary can be published, is described, and means what it says."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from penstock.catalog.platform.vocabulary import PLATFORM
from penstock.catalog.vocabularies import ALL
from penstock.envelope.envelope import JsonObject, JsonValue, Severity
from penstock.envelope.names import source_fault, type_fault
from penstock.registry.book import RegistryBook
from penstock.registry.declare import EventType
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.insight import derived_of, links_of, severity_of
from penstock.registry.registry import Registry
from penstock.registry.schema import SchemaVersion, check_payload
from penstock.registry.weight import weigh

EVENTS = {event.name: event for event in PLATFORM.events}
NAMES = sorted(EVENTS)
SPECIFIED = [
    "asset.produced",
    "asset.expired",
    "metastore.record.created",
    "metastore.record.updated",
    "metastore.record.deleted",
    "timestore.partition.created",
    "timestore.partition.deleted",
    "timestore.dataset.export.completed",
    "timestore.schema.evolved",
    "timestore.schema.backfill.requested",
    "filestore.command.completed",
    "filestore.node.created",
    "filestore.node.updated",
    "filestore.node.deleted",
    "filestore.node.uploaded",
    "filestore.node.moved",
    "filestore.node.copied",
    "filestore.node.reconciled",
    "filestore.node.missing",
    "filestore.node.downloaded",
    "filestore.drift.detected",
    "filestore.reconciliation.job.queued",
    "filestore.reconciliation.job.started",
    "filestore.reconciliation.job.completed",
    "filestore.reconciliation.job.failed",
    "filestore.reconciliation.job.cancelled",
    "secret.access",
    "secret.token.issued",
    "secret.token.refreshed",
    "secret.token.revoked",
    "workflow.definition.updated",
    "workflow.run.updated",
    "workflow.run.pending",
    "workflow.run.running",
    "workflow.run.succeeded",
    "workflow.run.failed",
    "workflow.run.canceled",
    "job.run.pending",
    "job.run.running",
    "job.run.succeeded",
    "job.run.failed",
    "job.run.canceled",
    "job.run.expired",
    "penstock.token.created",
    "penstock.token.revoked",
    "penstock.schema.registered",
    "penstock.dead-letters.redriven",
    "penstock.demo.heartbeat",
    "privacy.subject.erased",
    "penstock.trigger.created",
    "penstock.trigger.updated",
    "penstock.trigger.deleted",
    "penstock.trigger.paused",
    "penstock.trigger.resumed",
    "penstock.source.paused",
    "penstock.source.resumed",
    "penstock.retry.cancelled",
    "penstock.retry.forced",
    "penstock.workflow.created",
    "penstock.workflow.updated",
    "penstock.workflow.deleted",
    "penstock.run.started",
    "penstock.run.cancelled",
    "penstock.run.replayed",
    "penstock.schedule.created",
    "penstock.schedule.updated",
    "penstock.schedule.deleted",
    "penstock.service.registered",
    "penstock.service.updated",
    "penstock.service.deleted",
    "penstock.callback.received",
    "penstock.loop.stopped",
]
LOUD = {
    "filestore.node.missing": (Severity.WARNING, "declared"),
    "filestore.drift.detected": (Severity.WARNING, "declared"),
    "filestore.reconciliation.job.failed": (Severity.ERROR, "suffix"),
    "filestore.reconciliation.job.cancelled": (Severity.WARNING, "declared"),
    "workflow.run.failed": (Severity.ERROR, "suffix"),
    "workflow.run.canceled": (Severity.WARNING, "declared"),
    "job.run.failed": (Severity.ERROR, "suffix"),
    "job.run.canceled": (Severity.WARNING, "declared"),
    "job.run.expired": (Severity.ERROR, "declared"),
    "penstock.trigger.paused": (Severity.WARNING, "suffix"),
    "penstock.source.paused": (Severity.WARNING, "suffix"),
    "penstock.retry.cancelled": (Severity.INFO, "declared"),
    "penstock.run.cancelled": (Severity.INFO, "declared"),
    "penstock.loop.stopped": (Severity.ERROR, "declared"),
}


@pytest.fixture(scope="module")
def registry() -> Registry:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    assert book.declare(ALL) == ()
    return book.current()


def found(registry: Registry, name: str) -> SchemaVersion:
    schema = registry.find(name, None)
    assert schema is not None
    return schema


def example(event: EventType) -> JsonObject:
    assert event.example is not None
    return dict(event.example)


def test_exactly_the_specified_types_are_declared() -> None:
    assert sorted(SPECIFIED) == NAMES
    assert len(PLATFORM.events) == len(EVENTS)


@pytest.mark.parametrize("name", NAMES)
def test_the_name_and_the_sources_are_in_the_grammar(name: str) -> None:
    assert type_fault(name) is None
    assert EVENTS[name].sources
    assert [source_fault(source) for source in EVENTS[name].sources if source_fault(source)] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_purpose_is_one_sentence_of_its_own(name: str) -> None:
    event = EVENTS[name]

    assert event.purpose.endswith(".")
    assert len(inspect.cleandoc(event.payload.__doc__ or "").splitlines()) == 1
    assert [other.name for other in PLATFORM.events if other.purpose == event.purpose] == [name]


@pytest.mark.parametrize("name", NAMES)
def test_the_example_fits_its_schema(registry: Registry, name: str) -> None:
    assert check_payload(found(registry, name), example(EVENTS[name])) == ()


@pytest.mark.parametrize("name", NAMES)
def test_the_example_is_read_by_its_model_and_written_back_the_same(name: str) -> None:
    event = EVENTS[name]
    read = event.payload.model_validate(event.example)
    written = read.model_dump(mode="json", by_alias=True, exclude_unset=True)

    assert event.payload.model_validate(written) == read
    assert set(written) == set(example(event))


@pytest.mark.parametrize("name", NAMES)
def test_the_example_names_only_declared_fields(name: str) -> None:
    event = EVENTS[name]
    declared: Any = event.schema()["properties"]

    assert set(example(event)) <= set(declared)


@pytest.mark.parametrize("name", NAMES)
def test_every_optional_field_may_be_left_out_or_null(registry: Registry, name: str) -> None:
    event = EVENTS[name]
    schema: Any = event.schema()
    required = schema.get("required", [])
    least: JsonObject = {key: value for key, value in example(event).items() if key in required}
    nulls: JsonObject = {key: None for key in schema["properties"] if key not in required}

    assert check_payload(found(registry, name), least) == ()
    assert check_payload(found(registry, name), {**nulls, **least}) == ()


@pytest.mark.parametrize("name", NAMES)
def test_a_field_nobody_declared_is_kept(registry: Registry, name: str) -> None:
    payload: JsonObject = {**example(EVENTS[name]), "somethingNew": {"a": [1]}}

    assert check_payload(found(registry, name), payload) == ()


@pytest.mark.parametrize("name", [name for name in NAMES if EVENTS[name].schema().get("required")])
def test_a_payload_without_its_required_fields_is_refused(registry: Registry, name: str) -> None:
    required: Any = EVENTS[name].schema()["required"]

    faults = check_payload(found(registry, name), {})

    assert sorted(fault.pointer for fault in faults) == sorted(f"/{field}" for field in required)


@pytest.mark.parametrize("name", NAMES)
def test_a_payload_that_is_no_object_is_refused(registry: Registry, name: str) -> None:
    others: tuple[JsonValue, ...] = (None, [], "x", 1)
    for payload in others:
        assert check_payload(found(registry, name), payload) != ()


@pytest.mark.parametrize("name", NAMES)
def test_the_severity_is_the_one_people_expect(registry: Registry, name: str) -> None:
    expected = LOUD.get(name, (Severity.INFO, "default"))

    assert severity_of(found(registry, name), name, example(EVENTS[name]), {}) == expected


@pytest.mark.parametrize("name", [n for n in NAMES if EVENTS[n].derived_requires is not None])
def test_the_example_has_a_typed_reading(registry: Registry, name: str) -> None:
    payload = example(EVENTS[name])

    assert derived_of(found(registry, name), name, payload) == {"type": name, "payload": payload}


@pytest.mark.parametrize(
    ("name", "field"),
    [(event.name, field) for event in PLATFORM.events for field in event.derived_requires or ()],
)
def test_without_a_field_it_needs_there_is_no_typed_reading(
    registry: Registry, name: str, field: str
) -> None:
    payload: JsonObject = {k: v for k, v in example(EVENTS[name]).items() if k != field}

    assert derived_of(found(registry, name), name, payload) is None


@pytest.mark.parametrize("name", [name for name in NAMES if EVENTS[name].derived_requires is None])
def test_other_types_have_no_typed_reading(registry: Registry, name: str) -> None:
    assert derived_of(found(registry, name), name, example(EVENTS[name])) is None


@pytest.mark.parametrize("name", NAMES)
def test_what_a_type_declares_about_its_fields_is_about_fields_it_has(name: str) -> None:
    event = EVENTS[name]
    declared: Any = event.schema()["properties"]
    fields = {*(event.derived_requires or ())}
    fields |= {pointer[1:] for pointer in (*event.links.values(), *event.tags.values())}

    assert fields <= set(declared)


@pytest.mark.parametrize("name", NAMES)
def test_every_declared_link_is_found_in_the_example(registry: Registry, name: str) -> None:
    links = links_of(found(registry, name), example(EVENTS[name]), {})

    assert set(EVENTS[name].links) <= set(links)


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_is_light(name: str) -> None:
    assert weigh(EVENTS[name].schema(), levels=32) < 100


def test_the_flat_record_of_the_contract_s_example_is_publishable(registry: Registry) -> None:
    name = "metastore.record.updated"
    payload: JsonObject = {"namespace": "feature-flags", "key": "frontend-search", "version": 12}

    assert check_payload(found(registry, name), payload) == ()
    assert derived_of(found(registry, name), name, payload) is None
    assert links_of(found(registry, name), payload, {}) == {
        "metastoreRecords": [{"namespace": "feature-flags", "key": "frontend-search"}]
    }


def test_the_asset_of_the_contract_s_example_has_its_typed_reading(registry: Registry) -> None:
    name = "asset.produced"
    payload: JsonObject = {"assetId": "asset-7", "workflowRunId": "run-42"}

    assert check_payload(found(registry, name), payload) == ()
    assert derived_of(found(registry, name), name, payload) == {"type": name, "payload": payload}


def test_an_asset_may_say_itself_how_loud_it_is(registry: Registry) -> None:
    schema = found(registry, "asset.produced")

    assert severity_of(schema, "asset.produced", {"assetId": "a", "severity": "warning"}, {}) == (
        Severity.WARNING,
        "explicit",
    )


@pytest.mark.parametrize(
    ("name", "payload", "pointer"),
    [
        ("metastore.record.updated", {"namespace": "n"}, "/key"),
        ("metastore.record.updated", {"namespace": "n", "key": ""}, "/key"),
        ("metastore.record.updated", {"namespace": "n", "key": "k", "version": "12"}, "/version"),
        ("metastore.record.deleted", {"namespace": "n", "key": "k", "mode": "gone"}, "/mode"),
        ("asset.produced", {"assetId": 7}, "/assetId"),
        ("asset.expired", {"assetId": "a", "reason": "boredom"}, "/reason"),
        ("asset.produced", {"assetId": "a", "producedAt": "noon"}, "/producedAt"),
        ("asset.produced", {"assetId": "a", "freshness": {"ttlMs": -1}}, "/freshness/ttlMs"),
        ("timestore.partition.created", {"datasetId": "d", "rowCount": -1}, "/rowCount"),
        ("timestore.partition.deleted", {"datasetId": "d", "partitions": [{}]}, "/partitions/0/id"),
        ("filestore.node.created", {"backendMountId": "1", "path": "a"}, "/backendMountId"),
        ("filestore.node.created", {"backendMountId": 1, "path": "a", "kind": "pipe"}, "/kind"),
        ("secret.access", {"outcome": "granted"}, "/outcome"),
    ],
)
def test_a_payload_that_does_not_fit_is_refused_at_its_place(
    registry: Registry, name: str, payload: JsonObject, pointer: str
) -> None:
    assert [fault.pointer for fault in check_payload(found(registry, name), payload)] == [pointer]
