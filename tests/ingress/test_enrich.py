"""The enrichment adds what is missing, in its order, and never changes what a publisher said."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from tests.catalog.envelopes import TRACE, envelopes

from penstock.base.ids import uuid7
from penstock.catalog.vocabularies import ALL
from penstock.envelope.check import content_hash, write
from penstock.envelope.codec import encode
from penstock.envelope.envelope import Envelope, JsonObject, Severity
from penstock.envelope.form import json_form
from penstock.ingress.enrich import NOTES_KEY, Enrichment, enrichment
from penstock.ingress.pipeline import judge
from penstock.ingress.steps import BUILT_IN, Found, Step
from penstock.ingress.verdict import Accepted, Arrival
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.proposal import Proposal
from penstock.registry.registry import Registry
from penstock.registry.schema import SchemaVersion

ARRIVAL = Arrival(datetime(2026, 3, 1, tzinfo=UTC), "")
WORKFLOW = {
    "workflowDefinitionId": "wf",
    "workflowRunId": " run-42 ",
    "workflowRunStepId": "step",
    "jobRunId": "job",
    "jobSlug": "slug",
}


@pytest.fixture(scope="module")
def registry() -> Registry:
    book = RegistryBook(InMemoryRegistryStore(), mode="open")
    book.declare(ALL)
    book.register(
        Proposal("orders.order.placed", {"type": "object"}, metadata={"tags": {"sku": "/a/b~1c"}}),
        by="test",
    )
    return book.current()


def event(**changes: Any) -> JsonObject:
    return {
        "id": uuid7(),
        "type": "metastore.record.updated",
        "source": "metastore.api",
        "payload": {"namespace": "n", "key": "k"},
        **changes,
    }


def domain(**changes: Any) -> JsonObject:
    return event(**{"type": "WORKFLOW.STARTED", "source": "system", "payload": {}, **changes})


def enriched(registry: Registry, said: JsonObject) -> Envelope:
    verdict = judge(encode(said), ARRIVAL, registry)
    assert isinstance(verdict, Accepted), verdict
    return verdict.envelope


def run(steps: tuple[Step, ...], said: Envelope, schema: SchemaVersion | None = None) -> Accepted:
    return Enrichment(steps).enrich(said, {}, json_form(said.payload), schema)


def plain(**changes: Any) -> Envelope:
    said: dict[str, Any] = {
        "id": "e-1",
        "type": "a.b",
        "source": "a.b",
        "occurred_at": ARRIVAL.accepted_at,
        "payload": {},
        **changes,
    }
    return Envelope(**said)


def test_the_built_in_steps_run_in_their_declared_order() -> None:
    assert [step.name for step in enrichment().steps] == [
        "event-source",
        "metadata",
        "correlation",
        "causation",
        "trace",
        "tags",
    ]


# ------------------------------------------------------------------ event source and version


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("system", "system"),
        ("orchestrator", "system"),
        ("plugin", "plugin"),
        ("plugin.x", "plugin"),
    ],
)
def test_a_development_event_says_whether_the_system_or_a_plugin_made_it(
    registry: Registry, source: str, expected: str
) -> None:
    assert enriched(registry, domain(source=source)).metadata == {"eventSource": expected}


def test_an_event_source_that_was_said_is_kept(registry: Registry) -> None:
    said = domain(source="plugin.x", metadata={"eventSource": "system"})

    assert enriched(registry, said).metadata == {"eventSource": "system"}


def test_types_that_track_no_event_source_get_none(registry: Registry) -> None:
    assert enriched(registry, event(source="plugin.x")).metadata == {}


def test_the_workflow_version_comes_from_the_payload_unless_metadata_has_it(
    registry: Registry,
) -> None:
    payload = {"workflowVersion": "3.1.0"}

    found = enriched(registry, domain(payload=payload))
    said = enriched(registry, domain(payload=payload, metadata={"workflowVersion": "4"}))

    assert found.metadata["workflowVersion"] == "3.1.0"
    assert said.metadata["workflowVersion"] == "4"


# ------------------------------------------------------------------ correlation, cause and trace


def test_the_correlation_of_the_metadata_becomes_the_event_s(registry: Registry) -> None:
    metadata = {"correlationId": "corr-1", "causationId": "cause-1"}

    found = enriched(registry, domain(metadata=metadata))

    assert (found.correlation_id, found.causation_id) == ("corr-1", "cause-1")
    assert found.metadata == {**metadata, "eventSource": "system"}


def test_events_of_one_workflow_run_are_correlated_by_it(registry: Registry) -> None:
    found = enriched(registry, event(metadata={"__apphubWorkflow": WORKFLOW}))

    assert found.correlation_id == "run-42"
    assert found.causation_id is None


def test_a_correlation_in_metadata_is_nearer_than_the_workflow_run(registry: Registry) -> None:
    metadata = {"__apphubWorkflow": WORKFLOW, "correlationId": "corr-1"}

    assert enriched(registry, event(metadata=metadata)).correlation_id == "corr-1"


def test_a_correlation_and_a_cause_that_were_said_are_kept(registry: Registry) -> None:
    metadata = {"__apphubWorkflow": WORKFLOW, "correlationId": "other", "causationId": "other"}

    found = enriched(registry, event(correlationId="a", causationId="b", metadata=metadata))

    assert (found.correlation_id, found.causation_id) == ("a", "b")


@pytest.mark.parametrize("value", ["", "  ", "x" * 257, "a\nb", 7, None, {}])
def test_what_cannot_be_a_correlation_is_left_in_the_metadata(
    registry: Registry, value: object
) -> None:
    found = enriched(registry, event(metadata={"correlationId": value, "causationId": value}))

    assert (found.correlation_id, found.causation_id) == (None, None)
    assert found.metadata == {"correlationId": value, "causationId": value}


def test_a_span_context_becomes_a_traceparent(registry: Registry) -> None:
    context = {"traceId": TRACE[3:35], "spanId": TRACE[36:52]}

    assert enriched(registry, event(metadata={"traceContext": context})).traceparent == TRACE


def test_a_traceparent_that_was_said_is_kept(registry: Registry) -> None:
    context = {"traceId": "1" * 32, "spanId": "2" * 16}
    said = event(traceparent=TRACE, metadata={"traceContext": context})

    assert enriched(registry, said).traceparent == TRACE


# ------------------------------------------------------------------ tags, severity, version


def test_tags_promised_by_the_type_are_found_by_their_pointers(registry: Registry) -> None:
    said = event(type="orders.order.placed", payload={"a": {"b/c": 7}})

    assert enriched(registry, said).tags == {"sku": "7"}


@pytest.mark.parametrize("value", ["", "x" * 257, True, 1.5, None, [], {}])
def test_what_cannot_be_a_tag_is_no_tag(registry: Registry, value: object) -> None:
    said = event(type="orders.order.placed", payload={"a": {"b/c": value}})

    assert enriched(registry, said).tags == {}


def test_the_newest_version_is_filled_in(registry: Registry) -> None:
    assert enriched(registry, event()).schema_version == 1


def test_severity_is_decided_by_what_is_known_after_all_steps() -> None:
    loud = Step("loud", lambda _event, _schema: Found(metadata={"level": "fatal"}))

    verdict = run((*BUILT_IN, loud), plain())

    assert (verdict.severity, verdict.severity_rule) == (Severity.CRITICAL, "explicit")


# ------------------------------------------------------------------ steps of other people


def test_a_step_runs_only_for_the_types_it_names() -> None:
    team = Step("team", lambda _event, _schema: Found(tags={"team": "x"}), types=("orders.**",))

    assert run((team,), plain(type="orders.order.placed")).envelope.tags == {"team": "x"}
    assert run((team,), plain(type="users.user.left")).envelope.tags == {}


def test_steps_run_by_order_then_name_and_see_what_was_found_before() -> None:
    seen: list[tuple[str, dict[str, str]]] = []

    def step(name: str, order: int) -> Step:
        def find(said: Envelope, _schema: SchemaVersion | None) -> Found:
            seen.append((name, dict(said.tags)))
            return Found(tags={name: "1"})

        return Step(name, find, order)

    run((step("c", 7), step("b", 5), step("a", 7)), plain())

    assert seen == [("b", {}), ("a", {"b": "1"}), ("c", {"b": "1", "a": "1"})]


def test_a_step_cannot_change_what_the_publisher_said() -> None:
    found = Found({"t": "new"}, {"m": "new", "n": 1}, "new", "new", TRACE[:-2] + "00")
    said = plain(
        tags={"t": "old"},
        metadata={"m": "old"},
        correlation_id="old",
        causation_id="old",
        traceparent=TRACE,
    )

    after = run((Step("eager", lambda _event, _schema: found),), said).envelope

    assert after == said._replace(metadata={"m": "old", "n": 1})


def _raise(_event: Envelope, _schema: SchemaVersion | None) -> Found | None:
    raise LookupError("no such team")


@pytest.mark.parametrize(
    "find",
    [
        _raise,
        lambda _event, _schema: {"tags": {}},
        lambda _event, _schema: Found(tags={"a": 1}),
        lambda _event, _schema: Found(tags={"a b": "x"}),
        lambda _event, _schema: Found(tags={"a": "x" * 257}),
        lambda _event, _schema: Found(tags={"a": "nul\0"}),
        lambda _event, _schema: Found(tags={f"t{n}": "x" for n in range(65)}),
        lambda _event, _schema: Found(tags=["a"]),
        lambda _event, _schema: Found(metadata={"a": float("nan")}),
        lambda _event, _schema: Found(metadata={"a": {1, 2}}),
        lambda _event, _schema: Found(metadata={"a": "x" * 20_000}),
        lambda _event, _schema: Found(metadata={"__apphubWorkflow": {}}),
        lambda _event, _schema: Found(correlation_id="a\nb"),
        lambda _event, _schema: Found(causation_id=7),
        lambda _event, _schema: Found(traceparent="00-1-2-3"),
    ],
)
def test_a_step_that_fails_or_finds_nonsense_is_left_out_and_noted(find: Any) -> None:
    good = Step("good", lambda _event, _schema: Found(tags={"team": "x"}), order=200)

    after = run((Step("bad", find), good), plain(metadata={"m": 1})).envelope

    assert after.tags == {"team": "x"}
    assert after.metadata == {"m": 1, NOTES_KEY: {"skipped": ["bad"]}}


def test_every_step_that_failed_is_noted_in_order() -> None:
    after = run((Step("b", _raise, 2), Step("a", _raise, 1)), plain()).envelope

    assert after.metadata == {NOTES_KEY: {"skipped": ["a", "b"]}}


def test_what_a_step_finds_is_stored_as_json_has_it() -> None:
    found = Found(tags={"severity": Severity.ERROR}, metadata={"pair": (1, 2)})

    after = run((Step("step", lambda _event, _schema: found),), plain()).envelope

    assert (type(after.tags["severity"]), after.metadata["pair"]) == (str, [1, 2])


# ------------------------------------------------------------------ for all events


@given(envelopes)
def test_enrichment_only_ever_adds(envelope: Envelope) -> None:
    after = run(BUILT_IN, envelope).envelope

    assert dict(envelope.tags).items() <= dict(after.tags).items()
    assert {key: after.metadata[key] for key in envelope.metadata} == envelope.metadata
    kept = ("id", "type", "source", "occurred_at", "payload", "ttl_ms", "tenant_id")
    assert [getattr(after, name) for name in kept] == [getattr(envelope, name) for name in kept]
    for name in ("correlation_id", "causation_id", "traceparent", "schema_version"):
        assert getattr(envelope, name) in (None, getattr(after, name))


@given(envelopes)
def test_an_enriched_event_enriched_again_is_the_same(envelope: Envelope) -> None:
    once = run(BUILT_IN, envelope)

    assert run(BUILT_IN, once.envelope).envelope == once.envelope


def test_enrichment_does_not_change_what_makes_a_duplicate(registry: Registry) -> None:
    said = domain(metadata={"correlationId": "c"}, payload={"workflowVersion": "1"})

    verdict = judge(encode(said), ARRIVAL, registry)

    assert isinstance(verdict, Accepted)
    assert verdict.content_hash == content_hash(said)
    assert write(verdict.envelope)["metadata"] != said["metadata"]


def test_an_enrichment_travels_to_executors_and_does_the_same_there(registry: Registry) -> None:
    schema = registry.find("WORKFLOW.STARTED", None)
    said = plain(type="WORKFLOW.STARTED", payload={"workflowVersion": "1", "issueId": "42"})
    travelled = pickle.loads(pickle.dumps(enrichment()))  # noqa: S301  our own bytes

    there = travelled.enrich(said, {}, b"{}", schema)

    assert there == enrichment().enrich(said, {}, b"{}", schema)
    assert there.envelope.tags == {"issueId": "42"}


def test_a_registry_that_declares_other_tags_is_followed_at_once() -> None:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    tags = []
    for pointer in ("/a", "/b"):
        metadata: JsonObject = {"tags": {"which": pointer}}
        book.register(Proposal("x.y", {"type": "object"}, version=1, metadata=metadata), by="test")
        said = event(type="x.y", payload={"a": "first", "b": "second"})
        tags.append(enriched(book.current(), said).tags)

    assert tags == [{"which": "first"}, {"which": "second"}]
