"""Publish one event."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock.base.settings import load_settings
from penstock.cli import report
from penstock.cli.connect import token_of
from penstock.cli.options import AsJson, Tags, pairs
from penstock.envelope.envelope import JsonValue

_PAYLOAD_BYTES_READ_MAX = 4_000_000  # far over any limit: enough to be refused for its size

Source = Annotated[str, typer.Option(help="The logical publisher, such as metastore.api.")]
PayloadText = Annotated[
    str | None, typer.Option("--payload", help="JSON, or @file, or - for stdin; {} when left out.")
]
CorrelationId = Annotated[str | None, typer.Option(help="What this event belongs to.")]
EventId = Annotated[str | None, typer.Option("--id", help="Its id; made when left out.")]
OccurredAt = Annotated[str | None, typer.Option(help="When it happened (RFC 3339); now.")]


def publish(
    event_type: Annotated[str, typer.Argument(metavar="TYPE", help="The event's type.")],
    source: Source,
    payload: PayloadText = None,
    tags: Tags = None,
    correlation_id: CorrelationId = None,
    event_id: EventId = None,
    occurred_at: OccurredAt = None,
    as_json: AsJson = False,
) -> None:
    """Publish one event.

    It is durable when this returns.
    """
    from penstock.publish.publisher import Publisher

    settings = load_settings(os.environ)
    body = read_payload(payload)
    with Publisher(url=settings.base_url, token=token_of(settings), attempts=4) as publisher:
        outcome = publisher.publish(
            event_type, source=source, payload=body, tags=dict(pairs(tags)) or None,
            correlation_id=correlation_id, id=event_id, occurred_at=occurred_at,
        )  # fmt: skip
    if as_json:
        report.document(
            {"status": outcome.status, "acceptedAt": outcome.accepted_at, "event": outcome.event}
        )
    else:
        report.line(outcome.status, outcome.id, event_type)


def read_payload(text: str | None) -> JsonValue:
    """The payload that `--payload` names; NotInProfile when it is not JSON as we take it."""
    from penstock.envelope.codec import decode

    if text is None:
        return {}
    return decode(_bytes_of(text), bytes_max=_PAYLOAD_BYTES_READ_MAX)


def _bytes_of(text: str) -> bytes:
    if text == "-":
        return sys.stdin.buffer.read(_PAYLOAD_BYTES_READ_MAX + 1)
    if not text.startswith("@"):
        return text.encode(errors="surrogateescape")
    try:
        with Path(text[1:]).open("rb") as file:
            return file.read(_PAYLOAD_BYTES_READ_MAX + 1)
    except OSError as error:
        detail = f"expected a readable file {text[1:]}, found {error.strerror}"
        raise typer.BadParameter(detail, param_hint="--payload") from None
