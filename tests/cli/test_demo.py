"""Hold the demo to being a quiet guest: it waits while nobody is there, and leaves when asked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, cast

from penstock.base.errors import EventRefused, QueueUnavailable
from penstock.base.process import Stop
from penstock.base.settings import load_settings
from penstock.catalog.vocabularies import ALL
from penstock.cli.commands import demo
from penstock.cli.scenery import REACTION, REACTION_TRIGGER, STORIES
from penstock.envelope.envelope import JsonObject

TYPES = [kind for vocabulary in ALL for kind in vocabulary.events]


class Publisher:
    """Takes events after being away for a while, and asks to stop when it has enough."""

    def __init__(self, stop: Stop, *, away_times: int, calls_max: int) -> None:
        self.stop = stop
        self.away_times = away_times
        self.calls_max = calls_max
        self.sent: list[list[JsonObject]] = []

    def publish_many(self, events: Sequence[JsonObject]) -> list[Any]:
        if self.away_times > 0:
            self.away_times -= 1
            raise QueueUnavailable("nobody there")
        self.sent.append(list(events))
        if len(self.sent) >= self.calls_max:
            self.stop.ask()
        return [EventRefused("part of the play", reason="type_unknown") for _ in events]


def test_the_opening_comes_first_and_is_sent_once_however_long_the_server_is_away(
    monkeypatch: Any,
) -> None:
    for name in ("_EVERY_S", "_WHEN_AWAY_S"):
        monkeypatch.setattr(demo, name, 0.001)
    stop = Stop()
    publisher = Publisher(stop, away_times=3, calls_max=4)

    demo._play(cast("Any", publisher), TYPES, stop)

    assert [len(events) for events in publisher.sent] == [40, 1, 1, 1]


def test_asked_to_stop_it_sends_nothing_more() -> None:
    stop = Stop()
    stop.ask()
    publisher = Publisher(stop, away_times=0, calls_max=1)

    demo._play(cast("Any", publisher), TYPES, stop)

    assert publisher.sent == []


def test_without_a_play_it_ends_at_once() -> None:
    stop = Stop()
    publisher = Publisher(stop, away_times=0, calls_max=1)

    demo._play(cast("Any", publisher), [], stop)

    assert publisher.sent == []


def test_what_acts_on_the_play_is_made_once_and_left_as_it_is_after_that(
    desk: Any, answers: Any
) -> None:
    taken = {"code": "workflow_conflict", "detail": "expected a new slug", "status": 409}
    answers("POST /workflows", (201, {"data": {"workflow": {}}}), (409, taken))
    answers(f"POST /workflows/{REACTION['slug']}/triggers", {"data": {}}, status=201)

    for _ in range(2):
        demo._set_up(load_settings(os.environ))

    assert [each.path for each in desk.asked] == [
        "/workflows", f"/workflows/{REACTION['slug']}/triggers", "/workflows",
    ]  # fmt: skip


def test_what_acts_on_the_play_is_a_workflow_and_a_trigger_that_may_be_made() -> None:
    from penstock.triggers.check import check_spec
    from penstock.workflows.definition import read_definition

    spec = check_spec(REACTION_TRIGGER)

    assert read_definition(REACTION).slug == REACTION["slug"]
    assert any(spec.event_type in names for _, names in STORIES)
