"""Load a file of events, of any size, through the same ingress as everything else."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.base.errors import PenstockError, SetupIncomplete
from penstock.base.settings import Settings, load_settings
from penstock.cli import report
from penstock.cli.commands.queue import check_tenant, open_queue, opened
from penstock.cli.connect import connect
from penstock.cli.fields import number
from penstock.cli.lines import Batch, batches
from penstock.cli.options import AsJson, Tenant
from penstock.cli.refused import Refused
from penstock.envelope.envelope import DEFAULT_TENANT, JsonObject

if TYPE_CHECKING:
    from penstock.cli.client import Client

_LOOK_EVERY_S = 0.5
_AWAY_S = 30.0

File = Annotated[str, typer.Argument(metavar="FILE.jsonl", help="One event per line; - for stdin.")]
Wait = Annotated[bool, typer.Option("--wait", help="Return when every event is settled.")]
FromLine = Annotated[int, typer.Option(min=1, help="Go on at this line.")]


def import_file(
    file: File,
    wait: Wait = False,
    from_line: FromLine = 1,
    tenant: Tenant = DEFAULT_TENANT,
    as_json: AsJson = False,
) -> None:
    """Load events from a file of any size."""
    settings = load_settings(os.environ)
    check_tenant(tenant)
    began = time.monotonic()
    before = _accepted(settings) if wait else 0
    with opened(file) as (lines, size):
        every = batches(lines, from_line=from_line)
        with report.progress("importing", size) as advance:
            load = _post if settings.events_mode == "inline" else _spool
            result = load(settings, every, advance, tenant)
    if wait:
        _settle(settings, before + number(result, "queued"))
        result["settled"] = True
    result["seconds"] = round(time.monotonic() - began, 3)
    if as_json:
        report.document(result)
    else:
        report.columns([[name, str(value)] for name, value in result.items()])


def _spool(
    settings: Settings, every: Iterator[Batch], advance: Callable[[int], None], tenant: str
) -> JsonObject:
    from penstock.cli.spooling import LineWriter, Written

    written = Written()
    with contextlib.closing(open_queue(settings)) as queue:
        writer = LineWriter(queue, tenant_id=tenant, via="import", say=report.say)
        with _saying_where_to_go_on(lambda: written.last_line):
            for now in writer.write(every):
                advance(now.size - written.size)
                written = now
    return {"queued": written.messages, "bytes": written.size}


def _post(
    settings: Settings, every: Iterator[Batch], advance: Callable[[int], None], _tenant: str
) -> JsonObject:
    from penstock.cli.posting import LinePoster, Tally

    tally, last_line = Tally(), 0
    with connect(settings) as client, _saying_where_to_go_on(lambda: last_line):
        poster = LinePoster(client)
        for batch in every:
            tally += poster.post(batch)
            last_line = batch.last_line
            advance(batch.size)
    return {
        "accepted": tally.accepted,
        "duplicates": tally.duplicate,
        "rejected": tally.rejected,
    }


@contextlib.contextmanager
def _saying_where_to_go_on(last_line: Callable[[], int]) -> Iterator[None]:
    try:
        yield
    except (PenstockError, Refused, KeyboardInterrupt):
        report.say(f"loaded up to line {last_line()}; go on with --from-line {last_line() + 1}")
        raise


def _accepted(settings: Settings) -> int:
    with connect(settings) as client:
        return number(_ledger(client), "accepted")


def _settle(settings: Settings, accepted_min: int) -> None:
    """Wait until everything accepted so far is settled; refuse if what we queued is not in it.

    The server counts what lies on its own queue. Ours was closed, so it is all there; a lower count
    means that the server reads another folder, and waiting for it would prove nothing.
    """
    with connect(settings) as client:
        ledger = _ledger(client)
        target = number(ledger, "accepted")
        if target < accepted_min:
            raise _elsewhere(settings, accepted_min, target)
        with report.progress("settling", number(ledger, "inFlight")) as advance:
            before = number(ledger, "accepted") - number(ledger, "inFlight")
            while (now := number(ledger, "accepted") - number(ledger, "inFlight")) < target:
                advance(now - before)
                before = now
                time.sleep(_LOOK_EVERY_S)
                ledger = _ledger(client)


def _elsewhere(settings: Settings, expected: int, found: int) -> SetupIncomplete:
    return SetupIncomplete(
        f"expected {settings.base_url} to count {expected} accepted events, found {found}: it does "
        f"not read the queue in {settings.spool_dir.resolve()}",
        remedy="Set PENSTOCK_DATA_DIR to the folder that server runs on, and import again; "
        "what was queued here waits for a `penstock up` of its own.",
    )


def _ledger(client: Client) -> JsonObject:
    """The account; a server that is being restarted is waited for."""
    until = time.monotonic() + _AWAY_S
    while True:
        try:
            return client.get("/admin/ledger")
        except Refused as refused:
            if not refused.passes or time.monotonic() > until:
                raise
            time.sleep(_LOOK_EVERY_S)
