"""Severity is declared, explicit, by suffix, or info; and never guessed from anything else."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from penstock.envelope.envelope import JsonObject, JsonValue, Severity
from penstock.registry.insight import severity_of
from penstock.registry.schema import SchemaVersion

AT = datetime(2026, 3, 1, tzinfo=UTC)
ALIASES = {
    "critical": "critical fatal emergency alert panic severe catastrophe catastrophic",
    "error": "error err failure failed exception",
    "warning": "warning warn caution throttled paused degraded",
    "info": "notice info informational success succeeded ready started created",
    "debug": "debug trace verbose",
}


def declaring(severity: JsonValue) -> SchemaVersion:
    return SchemaVersion("a.b", 1, "active", {}, "h", {"severity": severity}, AT, "t", AT, "t")


@pytest.mark.parametrize("severity", list(Severity))
def test_what_the_type_declares_comes_first(severity: Severity) -> None:
    found = severity_of(declaring(severity.value), "a.failed", {"severity": "debug"}, {"level": 50})

    assert found == (severity, "declared")


@pytest.mark.parametrize("nonsense", [None, "loud", 3, [], {}])
def test_a_declaration_nobody_can_read_is_passed_over(nonsense: JsonValue) -> None:
    assert severity_of(declaring(nonsense), "a.failed", {}, {}) == (Severity.ERROR, "suffix")


@pytest.mark.parametrize(
    ("word", "severity"),
    [(word, severity) for severity, words in ALIASES.items() for word in words.split()],
)
@pytest.mark.parametrize("write", [str.lower, str.upper, lambda word: f"  {word.title()} "])
def test_every_alias_is_understood_in_any_case(word: str, severity: str, write) -> None:  # type: ignore[no-untyped-def]
    found = severity_of(None, "a.b", {}, {"severity": write(word)})

    assert found == (Severity(severity), "explicit")


@pytest.mark.parametrize(
    ("word", "severity"),
    [
        ("job_failed_twice", "error"),
        ("some errors", "error"),
        ("to-deadletter", "error"),
        ("prewarned", "warning"),
        ("stacktrace", "debug"),
        ("debugging", "debug"),
        ("already", "info"),
        ("successful", "info"),
        ("very critical", "critical"),
        ("nonfatal warning", "warning"),
    ],
)
def test_a_word_that_contains_a_level_is_understood(word: str, severity: str) -> None:
    assert severity_of(None, "a.b", {"severity": word}, {}) == (Severity(severity), "explicit")


@pytest.mark.parametrize(
    ("number", "severity"),
    [
        (60, "critical"),
        (50, "critical"),
        (49, "error"),
        (40, "error"),
        (39.5, "warning"),
        (30, "warning"),
        (20, "info"),
        (19, "debug"),
        (0, "debug"),
        (-5, "debug"),
        ("40", "error"),
        (" 50 ", "critical"),
        ("+30", "warning"),
        (Decimal("40.00000000000000000000000001"), "error"),
    ],
)
def test_a_number_is_read_as_a_python_logging_level(number: JsonValue, severity: str) -> None:
    assert severity_of(None, "a.b", {}, {"level": number}) == (Severity(severity), "explicit")


@pytest.mark.parametrize(
    "value", [True, False, None, [], {}, "", "high", "P1", "x" * 500, ["error"]]
)
@pytest.mark.parametrize("key", ["severity", "level"])
def test_what_nobody_can_read_falls_through_to_the_suffix(key: str, value: JsonValue) -> None:
    assert severity_of(None, "a.failed", {key: value}, {key: value}) == (Severity.ERROR, "suffix")


def test_metadata_wins_over_the_payload_and_severity_over_level() -> None:
    assert severity_of(None, "a.b", {"severity": "error"}, {"level": "debug"})[0] == "debug"
    assert severity_of(None, "a.b", {"level": "error", "severity": "debug"}, {})[0] == "debug"


def test_an_unreadable_severity_leaves_the_level_to_decide() -> None:
    assert severity_of(None, "a.b", {"severity": "loud", "level": "warn"}, {}) == (
        Severity.WARNING,
        "explicit",
    )


@pytest.mark.parametrize("key", ["priority", "status", "state", "result", "outcome", "Severity"])
@pytest.mark.parametrize("value", ["critical", "failed", 50])
def test_other_keys_say_nothing_about_severity(key: str, value: JsonValue) -> None:
    assert severity_of(None, "a.b", {key: value}, {key: value}) == (Severity.INFO, "default")


@pytest.mark.parametrize(
    "payload",
    [
        {"report": {"severity": "critical"}},
        {"items": [{"level": "error"}]},
        [{"severity": "critical"}],
        {"__apphubWorkflow": {"level": 50}},
        "critical",
        50,
        None,
    ],
)
def test_what_is_nested_says_nothing_about_severity(payload: JsonValue) -> None:
    metadata: JsonObject = {"nested": payload}

    assert severity_of(None, "a.b", payload, metadata) == (Severity.INFO, "default")


@pytest.mark.parametrize(
    ("event_type", "severity"),
    [
        ("job.run.failed", "error"),
        ("job.run.error", "error"),
        ("queue.message.deadletter", "error"),
        ("queue.message.dead-letter", "error"),
        ("queue.message.dead_lettered", "error"),
        ("workflow.run.cancelled", "error"),
        ("workflow.run.canceled", "error"),
        ("workflow.run.aborted", "error"),
        ("CODE.BUILD.FAILED", "error"),
        ("GATE.SECURITY.SCAN.FAILED", "error"),
        ("CODE.BUILD_FAILED", "error"),
        ("code.build-failed", "error"),
        ("data.quality.degraded", "warning"),
        ("source.warning", "warning"),
        ("source.throttled", "warning"),
        ("source.paused", "warning"),
        ("delivery.retry", "warning"),
        ("probe.debug", "debug"),
        ("probe.trace", "debug"),
        ("disk.critical", "critical"),
    ],
)
def test_the_last_word_of_the_type_decides_when_nothing_else_does(
    event_type: str, severity: str
) -> None:
    assert severity_of(None, event_type, {}, {}) == (Severity(severity), "suffix")


@pytest.mark.parametrize(
    "event_type",
    [
        "failed.job.retried",
        "error.report.sent",
        "metastore.record.updated",
        "CODE.MERGED.SUCCESS",
        "job.unfailed",
        "trace.span.closed",
        "metadata.profile.due",
    ],
)
def test_any_other_type_is_info(event_type: str) -> None:
    assert severity_of(None, event_type, {}, {}) == (Severity.INFO, "default")
