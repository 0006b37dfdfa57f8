"""Facets count the values of matching events, and say when they are a sample."""

from __future__ import annotations

import pytest
from tests.store.support import stored

from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import Severity
from penstock.explorer.facets import (
    Facet,
    Facets,
    FacetValue,
    count_facets,
    facets_wire,
    rank_values,
    read_facets,
    tag_keys,
)
from penstock.store.query import EventQuery

EVENTS = [
    stored(1, type="a.b", tags={"user": "u1"}),
    stored(2, type="a.b", tags={"user": "u2", "mode": "x"}, severity=Severity.ERROR),
    stored(3, type="a.c", tags={"user": "u1"}),
]


def test_values_are_counted_commonest_first() -> None:
    found = count_facets(EVENTS, ["type", "severity", "tag.user", "tag"], 10)

    assert found == Facets(
        (
            Facet("type", (FacetValue("a.b", 2), FacetValue("a.c", 1)), 0),
            Facet("severity", (FacetValue("info", 2), FacetValue("error", 1)), 0),
            Facet("tag.user", (FacetValue("u1", 2), FacetValue("u2", 1)), 0),
            Facet("tag", (FacetValue("user", 3), FacetValue("mode", 1)), 0),
        ),
        sampled=3,
        complete=True,
    )


def test_what_is_not_listed_is_counted_as_others() -> None:
    counted = [("a", 1), ("b", 5), ("c", 5), ("d", 2)]

    assert rank_values("type", counted, 2) == Facet(
        "type", (FacetValue("b", 5), FacetValue("c", 5)), others=3
    )


def test_a_full_sample_is_not_called_complete() -> None:
    found = count_facets(EVENTS, ["type"], 10, sample_max=2)

    assert (found.sampled, found.complete) == (2, False)
    assert found.facets[0].values == (FacetValue("a.b", 2),)


def test_parameters_name_the_keys_beside_the_filters() -> None:
    params = [("keys", "type,tag.userId"), ("keys", "tag"), ("source", "s"), ("limit", "5")]

    query, keys, limit = read_facets(params, tenant_id="acme")

    assert query == EventQuery("acme", sources=("s",))
    assert (keys, limit) == (("type", "tag.userId", "tag"), 5)
    assert tag_keys(keys) == ["userId"]


def test_without_keys_the_usual_ones_are_counted() -> None:
    assert read_facets([], tenant_id="acme")[1:] == (("type", "source", "severity"), 20)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("keys", "payload", "expected type, source, severity, tag or tag.<key>"),
        ("keys", "tag.", "expected type"),
        ("keys", ",".join(f"tag.k{n}" for n in range(13)), "at most 12 keys"),
        ("cursor", "x", "no pages"),
        ("key", "type", "did you mean keys"),
    ],
)
def test_what_has_no_facet_is_refused_by_name(name: str, value: str, says: str) -> None:
    with pytest.raises(QueryInvalid, match=says) as refusal:
        read_facets([(name, value)], tenant_id="acme")

    assert refusal.value.parameter == name


def test_the_answer_says_how_large_the_sample_was() -> None:
    wire = facets_wire(count_facets(EVENTS, ["type"], 1))

    assert wire == {
        "facets": {"type": {"values": [{"value": "a.b", "count": 2}], "others": 1}},
        "sampled": 3,
        "complete": True,
    }
