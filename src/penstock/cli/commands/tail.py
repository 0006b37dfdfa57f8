"""Follow the log live: every event once, in order, across lost connections."""

from __future__ import annotations

import random
import time
from typing import Annotated

import typer

from penstock.base.backoff import Backoff
from penstock.cli import report
from penstock.cli.connect import connect
from penstock.cli.eventline import event_cells, filter_parameters
from penstock.cli.fields import inner, text
from penstock.cli.options import AsJson, Severities, Sources, Tags, Types, pairs
from penstock.cli.refused import Refused
from penstock.cli.sse import Message, messages
from penstock.envelope.codec import load_stored
from penstock.envelope.envelope import JsonObject

_PATH = "/v1/events/stream"
_RECEIVED = "workflow.event.received"
_QUIET_S = 45.0  # three heartbeats
_AGAIN = Backoff(base_s=0.5, max_s=10.0)

Since = Annotated[
    str, typer.Option(help="`now`, or a position: everything after it, then live. 0 is all.")
]
CorrelationId = Annotated[str | None, typer.Option(help="Only with this correlation id.")]
Count = Annotated[int | None, typer.Option("--count", "-n", min=1, help="Stop after so many.")]


def tail(
    types: Types = None,
    sources: Sources = None,
    severities: Severities = None,
    tags: Tags = None,
    correlation_id: CorrelationId = None,
    since: Since = "now",
    count: Count = None,
    as_json: AsJson = False,
) -> None:
    """Print events as they are stored, until Ctrl-C."""
    if since != "now" and not since.isdecimal():
        raise typer.BadParameter(f"expected `now` or a position, found {since!r}")
    parameters = filter_parameters(
        types=types, sources=sources, severities=severities, tags=pairs(tags),
        correlation_id=correlation_id,
    )  # fmt: skip
    place = None if since == "now" else since
    Tail(parameters, place, count, as_json=as_json).run()


class Tail:
    """One reader's place in the log; it goes on there whatever happens to the connection."""

    def __init__(
        self,
        parameters: list[tuple[str, str]],
        place: str | None,
        count: int | None,
        *,
        as_json: bool,
    ) -> None:
        self._parameters = parameters
        self._place = place
        self._left = count
        self._as_json = as_json
        self._failures = 0
        self._was_connected = False

    def run(self) -> None:
        """Print until enough was printed, connecting again as often as it takes."""
        while self._left != 0:
            try:
                self._follow()
            except Refused as refused:
                if not (refused.passes and self._was_connected):
                    raise
                self._wait(refused.detail)

    def _follow(self) -> None:
        headers = {"accept": "text/event-stream"}
        if self._place is not None:
            headers["last-event-id"] = self._place
        with connect() as client, client.stream(
            _PATH, self._parameters, headers, quiet_s=_QUIET_S
        ) as chunks:  # fmt: skip
            for message in messages(chunks):
                self._failures, self._was_connected = 0, True
                self._see(message)
                if self._left == 0:
                    return
        self._wait("the stream ended")

    def _see(self, message: Message) -> None:
        frame = load_stored(message.data) if message.data else {}
        data = inner(frame, "data") if isinstance(frame, dict) else {}
        if message.event == _RECEIVED:
            self._print(inner(data, "event"))
            self._left = None if self._left is None else self._left - 1
        elif message.event == "lagged":
            report.say(f"fell behind by {text(data, 'dropped')} events; reading them from the log")
        elif message.event == "error":
            report.failure(text(data, "code"), text(data, "detail"), text(data, "remedy"))
        self._place = message.id if message.id is not None else self._place

    def _print(self, event: JsonObject) -> None:
        if self._as_json:
            report.document(event)
        else:
            report.line(*event_cells(event), tone=text(event, "severity"))

    def _wait(self, why: str) -> None:
        self._failures += 1
        report.say(f"connecting again: {why}")
        time.sleep(_AGAIN.delay_s(self._failures, random.SystemRandom()))
