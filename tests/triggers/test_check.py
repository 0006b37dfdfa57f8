"""What is wrong with a trigger is said at once, with its place, all of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.triggers.definitions import PLAIN

from penstock.triggers.check import TriggerInvalid, check_patch, check_spec

LEAF = {"path": "$.payload.x", "operator": "exists"}


def faults(said: Any, sample: Any = None) -> dict[str, str]:
    with pytest.raises(TriggerInvalid) as caught:
        check_spec(said, sample)
    return {fault.pointer: fault.detail for fault in caught.value.faults}


def nested(depth: int) -> Any:
    return LEAF if depth == 1 else {"not": nested(depth - 1)}


@pytest.mark.parametrize(
    ("said", "pointer", "sentence"),
    [
        ({"name": ""}, "/name", "at least 1 character"),
        ({"name": "x" * 201}, "/name", "at most 200 characters, found 201"),
        ({"name": "a\0b"}, "/name", "without NUL"),
        ({"name": 7}, "/name", "expected a string, found 7"),
        ({"description": "x" * 2001}, "/description", "at most 2000"),
        ({"eventType": "one"}, "/eventType", "2 to 6 segments"),
        ({"eventType": "Shop.Order"}, "/eventType", "all lower case"),
        ({"eventType": "a*b*c*d*.x"}, "/eventType", "wildcards"),
        ({"eventType": "x" * 201}, "/eventType", "at most 200"),
        ({"eventSource": "has space"}, "/eventSource", "dotted name"),
        ({"eventTyp": "a.b"}, "/eventTyp", "did you mean eventType?"),
        ({"predicates": [LEAF] * 26}, "/predicates", "at most 25"),
        ({"predicates": [{"all": [LEAF] * 13}] * 2}, "/predicates", "25 comparisons, found 26"),
        ({"predicates": [nested(6)]}, "/predicates", "at most 5 levels, found 6"),
        ({"predicates": [LEAF | {"operator": "is"}]}, "/predicates/0/operator", "'exists'"),
        ({"predicates": [LEAF | {"type": "xpath"}]}, "/predicates/0/type", "jsonPath"),
        ({"predicates": [LEAF | {"path": "$." + "x" * 512}]}, "/predicates/0/path", "512"),
        ({"predicates": [LEAF | {"vlaue": 1}]}, "/predicates/0/vlaue", "did you mean value?"),
        ({"predicates": [{"all": []}]}, "/predicates/0/all", "at least 1"),
        ({"predicates": [{"any": [LEAF], "all": [LEAF]}]}, "/predicates/0/any", "found 'any'"),
        ({"predicates": ["$.x"]}, "/predicates/0", "expected an object, found '$.x'"),
        ({"predicates": LEAF}, "/predicates", "expected an array"),
        ({"throttleCount": 0, "throttleWindowMs": 1}, "/throttleCount", "at least 1, found 0"),
        ({"throttleCount": 10_001, "throttleWindowMs": 1}, "/throttleCount", "at most 10000"),
        ({"throttleCount": 1, "throttleWindowMs": 86_400_001}, "/throttleWindowMs", "86400000"),
        ({"throttleCount": 1}, "/throttleWindowMs", "together"),
        ({"throttleWindowMs": 1}, "/throttleCount", "together"),
        ({"maxConcurrency": 1_001}, "/maxConcurrency", "at most 1000"),
        ({"maxConcurrency": "3"}, "/maxConcurrency", "expected an integer, found '3'"),
        ({"maxConcurrency": True}, "/maxConcurrency", "expected an integer, found a boolean"),
        ({"maxAttempts": 21}, "/maxAttempts", "at most 20"),
        ({"debounceMs": 0}, "/debounceMs", "at least 1"),
        ({"debounceKey": "x"}, "/debounceKey", "debounceMs beside"),
        ({"debounceMs": 5, "per": "latest"}, "/debounceMs", "per: event"),
        ({"groupKey": "x"}, "/groupKey", "batch or latest"),
        ({"per": "batch", "batchMaxEvents": 5}, "/batchTimeoutMs", "per: batch, found nothing"),
        ({"batchMaxEvents": 5}, "/batchMaxEvents", "only with per: batch, found it"),
        ({"per": "batch", "batchMaxEvents": 1_001, "batchTimeoutMs": 1}, "/batchMaxEvents", "1000"),
        ({"per": "day"}, "/per", "'event', 'batch' or 'latest'"),
        ({"status": "on"}, "/status", "'active', 'shadow' or 'disabled'"),
        ({"metadata": [1]}, "/metadata", "expected an object"),
        ({"runKeyTemplate": "x" * 501}, "/runKeyTemplate", "at most 500"),
        ({"idempotencyKeyExpression": "x" * 201}, "/idempotencyKeyExpression", "at most 200"),
        ({"parameterTemplate": ["x" * 140_000]}, "", "131072 bytes"),
        ({"metadata": {"n": float("nan")}}, "", "finite number"),
    ],
)  # fmt: skip
def test_a_field_that_does_not_fit_is_named(said: Any, pointer: str, sentence: str) -> None:
    found = faults(PLAIN | said)

    assert pointer in found, found
    assert sentence in found[pointer]


@pytest.mark.parametrize(
    ("said", "field", "sentence"),
    [
        ({"operator": "exists", "value": 1}, "/value", "no value beside exists"),
        ({"operator": "equals"}, "", "expected `value` beside equals, found nothing"),
        ({"operator": "equals", "values": [1]}, "/values", "found `values`"),
        ({"operator": "in"}, "", "`values` beside in"),
        ({"operator": "in", "values": []}, "/values", "`values` beside in"),
        ({"operator": "notIn", "value": 1}, "/value", "found `value`"),
        ({"operator": "gt", "value": "10"}, "/value", "finite number beside gt, found a string"),
        ({"operator": "gt", "value": True}, "/value", "finite number beside gt, found a boolean"),
        ({"operator": "regex", "value": 1}, "/value", "as a string, found a number"),
        ({"operator": "regex", "value": "x" * 513}, "/value", "at most 512"),
        (
            {"operator": "regex", "value": "a", "flags": "ix"},
            "/flags",
            "flags of g i m s u y, found 'x'",
        ),
        (
            {"operator": "regex", "value": "a", "flags": "i", "caseSensitive": True},
            "/flags",
            "found both",
        ),
        ({"operator": "equals", "value": 1, "flags": "i"}, "/flags", "no flags beside equals"),
        (
            {"operator": "gt", "value": 1, "caseSensitive": False},
            "/caseSensitive",
            "no caseSensitive beside gt",
        ),
        ({"operator": "exists", "orMissing": True}, "/orMissing", "no orMissing beside exists"),
    ],
)
def test_an_operand_that_does_not_fit_its_operator_is_refused(
    said: Any, field: str, sentence: str
) -> None:
    clause = {"path": "$.payload.x", **said}

    found = faults(PLAIN | {"predicates": [{"any": [{"not": clause}]}]})

    place = f"/predicates/0/any/0/not{field}"
    assert list(found) == [place]
    assert sentence in found[place]


def test_more_than_a_hundred_values_are_refused() -> None:
    clause = {"path": "$.x", "operator": "in", "values": list(range(101))}

    assert "at most 100" in faults(PLAIN | {"predicates": [clause]})["/predicates/0/values"]


def test_a_predicate_that_does_not_compile_is_refused_with_its_place() -> None:
    found = faults(
        PLAIN
        | {
            "predicates": [
                {"path": "$.payload[", "operator": "exists"},
                {"all": [{"path": "$.x", "operator": "regex", "value": "(unclosed"}]},
                {"not": {"path": "$..a..b", "operator": "exists"}},
            ]
        }
    )

    assert "RFC 9535" in found["/predicates/0/path"]
    assert "missing )" in found["/predicates/1/all/0/value"]
    assert "once at most" in found["/predicates/2/not/path"]


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?=.*x)", "(?<!y)z", "((a{100}){100}){100}"])
def test_a_regex_that_could_run_away_is_refused(pattern: str) -> None:
    clause = {"path": "$.x", "operator": "regex", "value": pattern}

    assert "linear time" in faults(PLAIN | {"predicates": [clause]})["/predicates/0/value"]


def test_templates_that_do_not_compile_are_refused_with_line_and_column() -> None:
    found = faults(
        PLAIN
        | {
            "parameterTemplate": {"a": ["x", "one\n {{ event.id | upcas }}"]},
            "runKeyTemplate": "{% if %}",
            "idempotencyKeyExpression": "{{ evnt.id }}",
        }
    )

    assert found["/parameterTemplate/a/1"].endswith(
        "found 'upcas'; did you mean upcase? (line 2, column 16)"
    )
    assert "line 1, column 4" in found["/runKeyTemplate"]
    assert "did you mean event?" in found["/idempotencyKeyExpression"]


def test_a_sample_event_shows_what_would_be_missing() -> None:
    said = PLAIN | {
        "parameterTemplate": {"id": "{{ event.payload.order.id }}"},
        "runKeyTemplate": "{{ parameters.nope }}",
    }

    assert check_spec(said)
    missing = faults(said, {"payload": {"order": {}}})
    assert list(missing) == ["/parameterTemplate/id"]
    assert "event.payload.order.id is undefined" in missing["/parameterTemplate/id"]
    assert list(faults(said, {"payload": {"order": {"id": 1}}})) == ["/runKeyTemplate"]
    assert list(faults(said, "sample")) == ["/sampleEvent"]


def test_a_sample_event_that_has_everything_passes() -> None:
    said = PLAIN | {
        "parameterTemplate": {"id": "{{ event.payload.id }}", "t": "{{ trigger.workflowSlug }}"},
        "runKeyTemplate": "{{ parameters.id }}-{{ now | date: '%F' }}",
        "idempotencyKeyExpression": "{{ event.payload.key | default: event.id }}",
    }

    assert check_spec(said, {"id": "e", "payload": {"id": 1}}).name == "gold orders"


@pytest.mark.parametrize("said", [None, [], "x", 3])
def test_what_is_no_object_is_refused(said: Any) -> None:
    assert "expected an object" in faults(said)[""]


def test_a_deep_bomb_is_refused_before_anything_recurses() -> None:
    deep: Any = LEAF
    for _ in range(100_000):
        deep = {"not": deep}

    assert "32 levels" in faults(PLAIN | {"predicates": [deep]})[""]


def test_every_fault_is_reported_and_can_be_shown_by_field() -> None:
    with pytest.raises(TriggerInvalid) as caught:
        check_spec({"eventType": "one", "zzz": 1, "predicates": [{"operator": "exists"}]})

    assert caught.value.code == "trigger_invalid"
    assert {fault.pointer for fault in caught.value.faults} == {
        "/name", "/eventType", "/zzz", "/predicates/0/path",
    }  # fmt: skip
    flattened: Any = caught.value.flattened()
    assert flattened["formErrors"] == []
    assert flattened["fieldErrors"]["name"] == ["expected a value, found nothing"]
    assert flattened["fieldErrors"]["predicates"] == ["/0/path: expected a value, found nothing"]


def test_a_patch_says_some_fields_anew_and_null_takes_one_back() -> None:
    spec = check_spec(PLAIN | {"maxConcurrency": 3, "maxAttempts": 9, "status": "shadow"})

    changed = check_patch(spec, {"maxConcurrency": None, "maxAttempts": None, "name": "new"})

    assert (changed.max_concurrency, changed.max_attempts, changed.name) == (None, 5, "new")
    assert changed.status == "shadow"


@pytest.mark.parametrize("changes", [{}, None, []])
def test_a_patch_needs_at_least_one_field(changes: Any) -> None:
    with pytest.raises(TriggerInvalid, match="at least one field"):
        check_patch(check_spec(PLAIN), changes)


def test_a_patch_is_checked_as_a_whole() -> None:
    spec = check_spec(PLAIN | {"throttleCount": 1, "throttleWindowMs": 1})

    with pytest.raises(TriggerInvalid, match="together"):
        check_patch(spec, {"throttleCount": None})
