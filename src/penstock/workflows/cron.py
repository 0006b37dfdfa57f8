"""Say when a cron expression fires in a time zone, in order and without repeats.

Five fields, as Debian's cron reads them. A job at a fixed local time fires once on the day the
clocks change: at the next time that exists when its own is skipped, the first time when its own
comes twice. A job whose minute or hour begins with a star goes on in real time. Whatever instant
one starts from, the instants after it are the same: tests/workflows/test_schedule.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

# How far to look back for the occurrence before an instant; each is tried when the last had none.
_REACHES = tuple(timedelta(days=days) for days in (1 / 24, 1, 8, 32, 367, 1_500, 15_000))


@lru_cache(256)
def zone_fault(name: str) -> str | None:
    """Nothing if there is such a time zone, else what is wrong."""
    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return f"expected an IANA time zone like Europe/Berlin, found {name[:60]!r}"
    return None


@lru_cache(256)
def cron_fault(expression: str) -> str | None:
    """Nothing if the expression can ever fire, else what is wrong."""
    fields = expression.split()
    if len(fields) != 5:
        return f"expected five fields, found {len(fields)}"
    try:
        fires = next(CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC)), None)
    except CronSimError as error:
        return f"expected a cron expression, found a {str(error)[:1].lower()}{str(error)[1:80]}"
    return None if fires is not None else "expected a day that exists, found none in 50 years"


def instants(expression: str, zone: str, after: datetime) -> Iterator[datetime]:
    """Every instant after `after` at which the expression fires, in UTC, each once."""
    last = after
    for local in CronSim(expression, after.astimezone(ZoneInfo(zone))):
        at = local.astimezone(UTC)
        # Two local times of a skipped hour fall together, and one that comes twice may lie back.
        if at > last:
            last = at
            yield at


def instants_until(expression: str, zone: str, after: datetime, until: datetime) -> list[datetime]:
    """Every instant after `after`, up to and including `until`."""
    found = []
    for at in instants(expression, zone, after):
        if at > until:
            break
        found.append(at)
    return found


def last_instant(
    expression: str, zone: str, until: datetime, *, after: datetime | None = None
) -> datetime | None:
    """The last instant up to and including `until`, if there is one after `after`."""
    for reach in _REACHES:
        start = until - reach
        stop = after is not None and start <= after
        found = instants_until(expression, zone, after if stop and after else start, until)
        if found or stop:
            return found[-1] if found else None
    return None
