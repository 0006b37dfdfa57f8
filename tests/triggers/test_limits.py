"""Limits are read strictly, and written back as they were."""

from __future__ import annotations

import pytest

from penstock.base.errors import SettingsInvalid
from penstock.triggers.limits import (
    Breaker,
    Limits,
    LoopGuard,
    RetryBackoff,
    SourceLimit,
    limits_from,
    parse_source_limits,
)


def test_limits_are_read_with_their_defaults() -> None:
    limits = parse_source_limits(
        '[{"source": "metastore.api", "limit": 10}, {"source": "*", "limit": 5, "windowMs": 1000},'
        ' {"source": "a.b", "limit": 1, "intervalMs": 2000, "pauseMs": 500}]'
    )

    assert limits == (
        SourceLimit("metastore.api", 10, 60_000, 60_000),
        SourceLimit("*", 5, 1_000, 1_000),
        SourceLimit("a.b", 1, 2_000, 500),
    )


@pytest.mark.parametrize("text", ["", "  ", "[]"])
def test_nothing_said_is_no_limit(text: str) -> None:
    assert parse_source_limits(text) == ()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("nonsense", "array"),
        ('{"source": "*", "limit": 1}', "array"),
        ("[3]", "/0"),
        ('[{"limit": 3}]', "/0/source"),
        ('[{"source": "a b", "limit": 3}]', "/0/source"),
        ('[{"source": "*"}]', "/0/limit"),
        ('[{"source": "*", "limit": 0}]', "/0/limit"),
        ('[{"source": "*", "limit": true}]', "/0/limit"),
        ('[{"source": "*", "limit": "5"}]', "/0/limit"),
        ('[{"source": "*", "limit": 1, "intervalMs": 0}]', "/0/intervalMs"),
        ('[{"source": "*", "limit": 1, "pauseMs": -1}]', "/0/pauseMs"),
        ('[{"source": "*", "limit": 1, "intervallMs": 5}]', "did you mean 'intervalMs'"),
        ('[{"source": "*", "limit": 1, "intervalMs": 5, "windowMs": 5}]', "both"),
        ('[{"source": "*", "limit": 1}, {"source": "*", "limit": 2}]', "twice"),
    ],
)
def test_a_malformed_limit_stops_the_start_and_is_not_no_limit(text: str, word: str) -> None:
    with pytest.raises(SettingsInvalid) as refused:
        parse_source_limits(text)

    assert word in refused.value.detail
    assert "EVENT_SOURCE_RATE_LIMITS" in refused.value.remedy


def test_recorded_limits_are_the_limits_that_were_recorded() -> None:
    limits = Limits(
        (SourceLimit("*", 5, 1_000, 1_000),), Breaker(2, 3, 4), LoopGuard(5, 6),
        RetryBackoff(7, 1.5, 80, 0.1),
    )  # fmt: skip

    assert limits_from(limits.wire()) == limits
    assert limits_from(Limits().wire()) == Limits()


def test_a_source_has_its_own_limit_before_the_fallback() -> None:
    limits = Limits(parse_source_limits('[{"source":"*","limit":1},{"source":"a.b","limit":2}]'))

    assert [limits.of_source(s).limit for s in ("a.b", "c.d")] == [2, 1]  # type: ignore[union-attr]
    assert Limits().of_source("a.b") is None
