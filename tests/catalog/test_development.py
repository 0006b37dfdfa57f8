"""The vocabulary of seed 002 is there, line by line, with its tags, and judges as it promises."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.base.ids import uuid7
from penstock.catalog.development.fields import STANDARD_TAGS
from penstock.catalog.development.issues import ISSUE_ASSIGNED, IssueAssigned
from penstock.catalog.development.vocabulary import DEVELOPMENT
from penstock.catalog.vocabularies import ALL
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, Severity
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Accepted, Arrival, Reason, Rejected
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.registry import Registry

# The list of the seed, as it stands there.
SEED = """
**Issue Management Events:**

- ISSUE.ASSIGNED.SUCCESS
- ISSUE.UPDATED.SUCCESS
- ISSUE.COMMENT.ADDED
- ISSUE.LABELED.CHANGED

**Code Generation Events:**

- CODE.GENERATED.SUCCESS
- CODE.GENERATED.FAILED
- CODE.REVIEW.REQUESTED
- CODE.MERGED.SUCCESS

**Workflow Events:**

- WORKFLOW.STARTED
- WORKFLOW.STEP_COMPLETED
- WORKFLOW.PAUSED
- WORKFLOW.RESUMED
- WORKFLOW.COMPLETED

**Quality Gate Events:**

- GATE.BUILD.STARTED
- GATE.TEST.STARTED
- GATE.SECURITY.SCAN.STARTED
- GATE.REVIEW.REQUESTED

**Plugin Events:**

- PLUGIN.INSTALLED.SUCCESS
- PLUGIN.UNINSTALLED.SUCCESS
- PLUGIN.DEBUG_SNAPSHOT.SUCCESS

**Provider Events:**

- PROVIDER.API.CALL
- PROVIDER.API.SUCCESS
- PROVIDER.API.FAILED
- PROVIDER.QUOTA.EXCEEDED

**Platform Events:**

- PLATFORM.API.CALL
- PLATFORM.SUCCESS
- PLATFORM.FAILED
- PLATFORM.RATE_LIMITED
"""
NAMES = re.findall(r"^- (\S+)$", SEED, re.MULTILINE)
LOUD = {
    "CODE.GENERATED.FAILED": Severity.ERROR,
    "WORKFLOW.PAUSED": Severity.WARNING,
    "PLUGIN.DEBUG_SNAPSHOT.SUCCESS": Severity.DEBUG,
    "PROVIDER.API.FAILED": Severity.ERROR,
    "PROVIDER.QUOTA.EXCEEDED": Severity.WARNING,
    "PLATFORM.FAILED": Severity.ERROR,
    "PLATFORM.RATE_LIMITED": Severity.WARNING,
}
OWN_TAGS = {
    "WORKFLOW": {"workflowName"},
    "GATE": {"buildId"},
    "PLUGIN": {"pluginName"},
}
ARRIVAL = Arrival(datetime(2026, 3, 1, tzinfo=UTC), "")


@pytest.fixture(scope="module")
def registry() -> Registry:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    return book.current()


def issue(**changes: Any) -> bytes:
    event: JsonObject = {
        "id": uuid7(),
        "type": "ISSUE.ASSIGNED.SUCCESS",
        "source": "system",
        "payload": {"issueId": "42", "assignee": "ana"},
    }
    return encode({**event, **changes})


def test_exactly_the_types_of_the_seed_are_declared_in_its_order() -> None:
    assert [event.name for event in DEVELOPMENT.events] == NAMES
    assert len(NAMES) == 28


@pytest.mark.parametrize("event", DEVELOPMENT.events, ids=lambda event: event.name)
def test_every_type_promises_the_six_standard_tags_and_those_of_its_category(event: Any) -> None:
    own = OWN_TAGS.get(event.name.split(".")[0], set())

    assert set(STANDARD_TAGS) | own <= set(event.tags)
    assert all(pointer == f"/{key}" for key, pointer in event.tags.items())


@pytest.mark.parametrize("event", DEVELOPMENT.events, ids=lambda event: event.name)
def test_every_type_has_the_severity_people_expect_and_needs_a_uuid_v7(event: Any) -> None:
    assert event.severity == LOUD.get(event.name, Severity.INFO)
    assert event.needs_uuid7


@pytest.mark.parametrize("name", NAMES)
def test_a_type_of_any_number_of_segments_is_published_with_a_payload_that_says_nothing(
    registry: Registry, name: str
) -> None:
    event: JsonObject = {"type": name, "source": "system", "tags": {"issueId": "42"}}

    assert isinstance(judge(encode(event), ARRIVAL, registry), Accepted)


@pytest.mark.parametrize(("given", "tag"), [("42", "42"), (42, "42")])
def test_an_issue_may_be_counted_or_named_and_is_a_text_in_tags_and_python(
    registry: Registry, given: object, tag: str
) -> None:
    verdict = judge(issue(payload={"issueId": given}), ARRIVAL, registry)

    assert isinstance(verdict, Accepted)
    assert verdict.envelope.tags == {"issueId": tag}
    assert verdict.envelope.payload == {"issueId": given}
    assert ISSUE_ASSIGNED.read(verdict.envelope) == IssueAssigned(issue_id=tag)


def test_a_tag_the_publisher_said_wins_and_a_custom_one_is_kept(registry: Registry) -> None:
    verdict = judge(issue(tags={"issueId": "7", "team": "search"}), ARRIVAL, registry)

    assert isinstance(verdict, Accepted)
    assert verdict.envelope.tags == {"issueId": "7", "team": "search"}


@pytest.mark.parametrize(
    ("payload", "pointer"),
    [
        ({"mode": "party"}, "/payload/mode"),
        ({"issueId": ""}, "/payload/issueId"),
        ({"issueId": True}, "/payload/issueId"),
        ({"labels": "bug"}, "/payload/labels"),
        ({"selectionCriteria": "dice"}, "/payload/selectionCriteria"),
    ],
)
def test_a_payload_that_does_not_fit_is_refused_at_its_place(
    registry: Registry, payload: JsonObject, pointer: str
) -> None:
    verdict = judge(issue(payload=payload), ARRIVAL, registry)

    assert isinstance(verdict, Rejected)
    assert (verdict.reason, verdict.pointer) == (Reason.PAYLOAD_INVALID, pointer)


@pytest.mark.parametrize(
    ("metadata", "pointer"),
    [
        ({"eventSource": "robot"}, "/metadata/eventSource"),
        ({"eventSource": None}, "/metadata/eventSource"),
        ({"eventSource": ["system"]}, "/metadata/eventSource"),
        ({"workflowVersion": 3}, "/metadata/workflowVersion"),
    ],
)
def test_where_an_event_comes_from_is_system_or_plugin_and_nothing_else(
    registry: Registry, metadata: JsonObject, pointer: str
) -> None:
    verdict = judge(issue(metadata=metadata), ARRIVAL, registry)

    assert isinstance(verdict, Rejected)
    assert (verdict.reason, verdict.pointer) == (Reason.ENVELOPE_INVALID, pointer)
    assert "expected" in verdict.detail
