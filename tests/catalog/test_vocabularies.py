"""Every declared type can be published as its example shows, is described, and promises right."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.base.ids import uuid7
from penstock.catalog.vocabularies import ALL
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.envelope.names import source_fault, type_fault
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Accepted, Arrival
from penstock.registry.book import RegistryBook
from penstock.registry.declare import EventType
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.registry import Registry
from penstock.registry.schema import SchemaVersion, check_payload
from penstock.registry.weight import weigh

VOCABULARY_OF = {event.name: vocabulary.name for vocabulary in ALL for event in vocabulary.events}
EVENTS = {event.name: event for vocabulary in ALL for event in vocabulary.events}
NEW = sorted(name for name, vocabulary in VOCABULARY_OF.items() if vocabulary != "platform")
ARRIVAL = Arrival(datetime(2026, 3, 1, tzinfo=UTC), "")


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


def accepted(registry: Registry, name: str) -> Accepted:
    event: JsonObject = {
        "id": uuid7(),
        "type": name,
        "source": EVENTS[name].sources[0],
        "payload": example(EVENTS[name]),
    }
    verdict = judge(encode(event), ARRIVAL, registry)
    assert isinstance(verdict, Accepted), verdict
    return verdict


def test_no_two_types_have_the_same_name() -> None:
    assert len(EVENTS) == sum(len(vocabulary.events) for vocabulary in ALL)


def test_every_type_has_a_payload_model_of_its_own_so_that_a_match_narrows() -> None:
    assert len({event.payload for event in EVENTS.values()}) == len(EVENTS)


def constants() -> dict[str, str]:
    """The constants of every page: the type's name, and what it is called there."""
    found = {}
    for vocabulary in ("platform", "development", "governance"):
        package = importlib.import_module(f"penstock.catalog.{vocabulary}")
        for page in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for called, value in vars(importlib.import_module(page.name)).items():
                if isinstance(value, EventType):
                    found[value.name] = called
    return found


def test_every_type_that_others_publish_has_a_constant_to_import() -> None:
    called = constants()

    assert set(EVENTS) - set(called) == {
        n for n in EVENTS if n.startswith(("penstock.", "privacy."))
    }
    for name, constant in called.items():
        words = set(re.split(r"\W|_", name.upper()))
        assert words & set(constant.split("_")), (name, constant)


@pytest.mark.parametrize("name", NEW)
def test_the_name_and_the_sources_are_in_the_grammar(name: str) -> None:
    assert type_fault(name) is None
    assert EVENTS[name].sources
    assert [source for source in EVENTS[name].sources if source_fault(source)] == []


@pytest.mark.parametrize("name", NEW)
def test_the_purpose_is_one_sentence_of_its_own(name: str) -> None:
    event = EVENTS[name]

    assert event.purpose.endswith(".")
    assert len(inspect.cleandoc(event.payload.__doc__ or "").splitlines()) == 1
    assert [other.name for other in EVENTS.values() if other.purpose == event.purpose] == [name]


@pytest.mark.parametrize("name", NEW)
def test_every_field_has_a_meaning(name: str) -> None:
    fields = EVENTS[name].payload.model_fields

    assert [field for field, info in fields.items() if not info.description] == []


@pytest.mark.parametrize("name", NEW)
def test_the_example_is_read_by_its_model_and_written_back_the_same(name: str) -> None:
    event = EVENTS[name]
    read = event.payload.model_validate(event.example)
    written = read.model_dump(mode="json", by_alias=True, exclude_unset=True)

    assert event.payload.model_validate(written) == read
    assert set(written) == set(example(event))


@pytest.mark.parametrize("name", NEW)
def test_the_example_shows_declared_fields_and_all_the_required_ones(name: str) -> None:
    schema: Any = EVENTS[name].schema()

    assert set(schema.get("required", ())) <= set(example(EVENTS[name])) <= {*schema["properties"]}


@pytest.mark.parametrize("name", NEW)
def test_a_field_nobody_declared_is_kept(registry: Registry, name: str) -> None:
    payload: JsonObject = {**example(EVENTS[name]), "somethingNew": {"a": [1]}}

    assert check_payload(found(registry, name), payload) == ()


@pytest.mark.parametrize("name", NEW)
def test_a_payload_that_is_no_object_is_refused(registry: Registry, name: str) -> None:
    others: tuple[JsonValue, ...] = (None, [], "x", 1)
    for payload in others:
        assert check_payload(found(registry, name), payload) != ()


@pytest.mark.parametrize("name", NEW)
def test_the_severity_is_declared_and_decides(registry: Registry, name: str) -> None:
    verdict = accepted(registry, name)

    assert EVENTS[name].severity is not None
    assert (verdict.severity, verdict.severity_rule) == (EVENTS[name].severity, "declared")


@pytest.mark.parametrize("name", NEW)
def test_the_tags_it_promises_are_there_for_every_field_the_payload_has(
    registry: Registry, name: str
) -> None:
    payload = example(EVENTS[name])
    promised = {key: str(payload[key]) for key in EVENTS[name].tags if key in payload}

    assert promised
    assert accepted(registry, name).envelope.tags == promised


@pytest.mark.parametrize("name", NEW)
def test_what_a_type_declares_about_its_fields_is_about_fields_it_has(name: str) -> None:
    event = EVENTS[name]
    properties: Any = event.schema()["properties"]
    pointers = (*event.tags.values(), *event.links.values(), *event.metadata_from.values())

    assert {pointer[1:] for pointer in pointers} <= set(properties)


@pytest.mark.parametrize("name", NEW)
def test_the_schema_is_light(name: str) -> None:
    assert weigh(EVENTS[name].schema(), levels=32) < 100


@pytest.mark.parametrize("name", NEW)
def test_the_builder_makes_an_event_that_is_accepted(registry: Registry, name: str) -> None:
    event = EVENTS[name]
    payload = event.payload.model_validate(event.example)
    wire = event.event(payload, source=event.sources[0], correlation_id="req-1")

    verdict = judge(encode({**wire, "id": uuid7()}), ARRIVAL, registry)

    assert isinstance(verdict, Accepted), verdict
    assert event.read(verdict.envelope) == payload
