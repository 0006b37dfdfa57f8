"""Play a small data platform at work, so that the first look is alive."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from penstock.base.backoff import Backoff
from penstock.base.errors import EventRefused, PenstockError, QueueUnavailable
from penstock.base.process import Stop
from penstock.base.settings import Settings
from penstock.cli.connect import connect, token_of
from penstock.cli.options import ParentPid
from penstock.cli.part import begin_stoppable
from penstock.cli.refused import Refused
from penstock.cli.scenery import REACTION, REACTION_TRIGGER, acts, opening, stage
from penstock.envelope.envelope import JsonObject
from penstock.registry.declare import EventType

if TYPE_CHECKING:
    from penstock.publish.publisher import Publisher

_log = structlog.get_logger("demo")
_EVERY_S = 0.5
_PAUSE_S_MAX = 3.0
_WHEN_AWAY_S = 1.0


def demo(parent_pid: ParentPid = None) -> None:
    """Publish demo events until stopped."""
    settings, stop = begin_stoppable("demo", parent_pid)
    from penstock.catalog.vocabularies import ALL
    from penstock.publish.publisher import Publisher

    _set_up(settings)
    types = [kind for vocabulary in ALL for kind in vocabulary.events]
    patience = Backoff(base_s=0.2, max_s=1.0)
    with Publisher(
        url=settings.base_url, token=token_of(settings), backoff=patience, attempts=3
    ) as publisher:
        _play(publisher, types, stop)


def _set_up(settings: Settings) -> None:
    """Give the play something that acts on it, unless it is there from the last time."""
    try:
        with connect(settings) as client:
            client.post("/workflows", REACTION)
            client.post(f"/workflows/{REACTION['slug']}/triggers", REACTION_TRIGGER)
    except (PenstockError, Refused) as error:
        _log.info("demo_workflow_left_as_it_is", code=error.code, detail=error.detail)


def _play(publisher: Publisher, types: Sequence[EventType], stop: Stop) -> None:
    rng = random.Random()  # noqa: S311  a play, not a secret
    play = acts(types, rng)
    waiting = opening(play, rng, datetime.now(UTC))
    while waiting and not stop.event.is_set():
        if not _sent(publisher, waiting):
            stop.event.wait(_WHEN_AWAY_S)
            continue
        stop.event.wait(min(rng.expovariate(1 / _EVERY_S), _PAUSE_S_MAX))
        waiting = [stage(next(play), rng, datetime.now(UTC))]


def _sent(publisher: Publisher, events: Sequence[JsonObject]) -> bool:
    """Whether the server answered; a refusal is part of the play, a server that is away is not."""
    try:
        results = publisher.publish_many(events)
    except QueueUnavailable:
        return False
    for result in results:
        if isinstance(result, EventRefused):
            _log.info("demo_event_refused", reason=result.reason, detail=result.detail)
    return True
