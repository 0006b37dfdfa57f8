"""Read one page of the log for one subscriber: match, write frames, stop when there is enough.

Runs on a thread. The log finds events by its indexes, and `matches` has the last word, so a filter
means the same for what was and for what comes. Rows beyond the page's bytes are let go at once and
read again later, so what a stalled client keeps is small even when its events are big.
"""

from __future__ import annotations

from datetime import datetime

import structlog

from penstock.store.query import EventQuery, matches
from penstock.stream.feed import Read
from penstock.stream.frames import Entry, Form, Parcel, View
from penstock.stream.port import LogReader
from penstock.stream.subscription import Page

log = structlog.get_logger(__name__)


def read_page(
    reader: LogReader, query: EventQuery, read: Read, *, form: Form, bytes_max: int,
    view: View, emitted_at: datetime,
) -> Page:  # fmt: skip
    """The matching events of one page as frames, at least one if there is any."""
    found = reader.matching(query, after=read.after, until=read.until, limit=read.limit)
    entries: list[Entry] = []
    size, through = 0, read.after
    for looked_at, stored in enumerate(found.events):
        wanted = stored.position <= read.until and matches(query, stored)
        entry = _write(Parcel(stored, view, emitted_at), form) if wanted else None
        if entry is not None:
            size += entry.size
            if entries and size > bytes_max:
                return Page(entries, looked_at, through, cut=True)
            entries.append(entry)
        through = stored.position
    return Page(entries, len(found.events), found.through, cut=False)


def _write(parcel: Parcel, form: Form) -> Entry | None:
    """The frames of an event. One that cannot be written must not hold up those behind it."""
    try:
        return parcel.entry(form)
    except Exception:
        log.exception("an event could not be sent", position=parcel.stored.position)
        return None
