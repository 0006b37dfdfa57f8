"""Look at the queue, and put raw lines on it past the door."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from penstock.base.errors import SettingsInvalid
from penstock.base.settings import Settings, load_settings
from penstock.cli import report
from penstock.cli.lines import batches
from penstock.cli.options import AsJson, Tenant
from penstock.envelope.envelope import DEFAULT_TENANT

if TYPE_CHECKING:
    from penstock.transport.on_disk import Spool

app = typer.Typer(
    help="Look at the queue and write to it.", no_args_is_help=True, rich_markup_mode=None
)

File = Annotated[str, typer.Argument(metavar="FILE", help="One message per line; - for stdin.")]
_TENANT = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


@app.command("write")
def write(file: File, tenant: Tenant = DEFAULT_TENANT, as_json: AsJson = False) -> None:
    """Put raw lines on the queue, unchecked, as a foreign producer would."""
    from penstock.cli.spooling import LineWriter, Written

    settings = load_settings(os.environ)
    require_queue(settings)
    check_tenant(tenant)
    written = Written()
    with opened(file) as (lines, size), contextlib.closing(open_queue(settings)) as queue:
        writer = LineWriter(queue, tenant_id=tenant, via="queue", say=report.say)
        with report.progress("writing", size) as advance:
            for now in writer.write(batches(lines)):
                advance(now.size - written.size)
                written = now
    if as_json:
        report.document({"written": written.messages, "bytes": written.size})
    else:
        report.line("written", written.messages)


@app.command("status")
def status(as_json: AsJson = False) -> None:
    """Say how much waits on the queue, and for how long."""
    from penstock.transport.on_disk import pending

    settings = load_settings(os.environ)
    waiting = pending(settings.spool_dir) if settings.spool_dir.is_dir() else None
    oldest_ms = waiting.oldest_ms if waiting else None
    age_s = None if oldest_ms is None else max(0.0, time.time() - oldest_ms / 1000)
    facts = {
        "mode": settings.events_mode,
        "messages": waiting.messages if waiting else 0,
        "bytes": waiting.bytes if waiting else 0,
        "segments": len(waiting.segments) if waiting else 0,
        "oldestSeconds": None if age_s is None else round(age_s, 1),
    }
    if as_json:
        report.document({**facts, "folder": str(settings.spool_dir)})
    else:
        report.columns([[name, str(value)] for name, value in facts.items() if value is not None])


def open_queue(settings: Settings) -> Spool:
    """The queue of this folder; one that had to be made has no reader yet, and that is said."""
    from penstock.house import open_spool

    if not settings.spool_dir.is_dir():
        report.say(
            f"nothing has run on {settings.data_dir.resolve()} yet, so this waits there until "
            "`penstock up` does; PENSTOCK_DATA_DIR names another folder"
        )
    return open_spool(settings)


def require_queue(settings: Settings) -> None:
    """Refuse where there is no queue to write to."""
    if settings.events_mode == "inline":
        raise SettingsInvalid(
            "expected PENSTOCK_EVENTS_MODE=spool, found inline, which has no queue",
            remedy="Unset PENSTOCK_EVENTS_MODE, or use `penstock import`, which goes over HTTP.",
        )


def check_tenant(tenant: str) -> None:
    """Refuse a tenant that no queue could carry."""
    if _TENANT.fullmatch(tenant) is None:
        raise typer.BadParameter("expected letters, digits, . _ or -", param_hint="--tenant")


@contextlib.contextmanager
def opened(file: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """The file to read and its size; stdin, whose size nobody knows, for `-`."""
    if file == "-":
        yield sys.stdin.buffer, None
        return
    try:
        stream = Path(file).open("rb")  # noqa: SIM115  closed below, once it is open
    except OSError as error:
        detail = f"expected a readable file {file}, found {error.strerror}"
        raise typer.BadParameter(detail, param_hint="FILE") from None
    with stream:
        yield stream, Path(file).stat().st_size or None
