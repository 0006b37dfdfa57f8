"""Hold the demo to its word: events that fit their schemas, stories that hang together."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import islice

from penstock.catalog.vocabularies import ALL
from penstock.cli.scenery import OPENING_SPAN_S, STORIES, acts, opening, stage
from penstock.envelope.check import read
from penstock.envelope.envelope import Envelope

NOW = datetime(2026, 3, 1, 10, 30, tzinfo=UTC)
TYPES = {kind.name: kind for vocabulary in ALL for kind in vocabulary.events}


def test_every_type_of_every_story_is_declared_with_an_example() -> None:
    told = {name for _, names in STORIES for name in names}

    assert {name for name in told if name not in TYPES or TYPES[name].example is None} == set()


def test_every_event_but_the_mistakes_fits_the_envelope_and_its_payload() -> None:
    rng = random.Random(1)

    for act in islice(acts(TYPES.values(), rng), 1_000):
        event = stage(act, rng, NOW)
        found = read(event, accepted_at=NOW, fallback_id="x", tenant_id=None)
        assert isinstance(found, Envelope), found
        if not act.is_mistake:
            TYPES[str(event["type"])].payload.model_validate(event["payload"])


def test_now_and_then_there_is_a_mistake_and_it_does_not_fit() -> None:
    rng = random.Random(2)
    staged = [(act, stage(act, rng, NOW)) for act in islice(acts(TYPES.values(), rng), 1_000)]

    mistakes = [event for act, event in staged if act.is_mistake]

    assert 10 <= len(mistakes) <= 40
    assert any(event["type"] not in TYPES for event in mistakes)
    assert any(event["payload"] == {"note": "sent by an old client"} for event in mistakes)


def test_the_events_of_one_story_share_what_they_are_about() -> None:
    rng = random.Random(3)
    play = acts(TYPES.values(), rng)
    runs: dict[str, set[object]] = {}
    for act in islice(play, 500):
        payload = stage(act, rng, NOW)["payload"]
        if not act.is_mistake and isinstance(payload, dict) and "workflowRunId" in payload:
            runs.setdefault(act.correlation_id, set()).add(payload["workflowRunId"])

    assert len(runs) > 10
    assert all(len(ids) == 1 for ids in runs.values())


def test_most_of_it_is_good_news_and_some_is_not() -> None:
    rng = random.Random(4)
    names = Counter(act.kind.name for act in islice(acts(TYPES.values(), rng), 2_000))

    bad = sum(count for name, count in names.items() if name.endswith((".failed", ".missing")))

    assert 20 < bad < 400


def test_the_opening_is_the_last_minutes_in_order() -> None:
    rng = random.Random(5)

    events = opening(acts(TYPES.values(), rng), rng, NOW)

    times = [datetime.fromisoformat(str(event["occurredAt"])) for event in events]
    assert len(times) == 40
    assert times == sorted(times)
    assert times[0] >= NOW - timedelta(seconds=OPENING_SPAN_S + 1)
    assert times[-1] < NOW


def test_without_declared_types_there_is_no_play() -> None:
    assert list(acts([], random.Random(6))) == []
