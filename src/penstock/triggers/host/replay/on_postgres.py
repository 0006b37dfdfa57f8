"""Read passes as they were recorded and run them again, for one trigger.

    trigger_passes · acts · ended runs · held events · versions · limits · odd launches
        └── replay (pure) ──▶ the deliveries and the history that are on record

Passes are read in stretches, so that a long record needs little memory beside what comes out of it.
Only events of the trigger's tenant are read, and only of its types when it names them exactly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from psycopg import sql
from psycopg.rows import TupleRow

from penstock.envelope.codec import load_stored
from penstock.envelope.envelope import JsonObject, Stored
from penstock.envelope.names import is_glob
from penstock.sql import query
from penstock.store.on_postgres import read_events
from penstock.store.walk.choose import Parameter
from penstock.store.walk.on_postgres import Connection
from penstock.triggers.backtest import RecordedPass, RecordedVersion, Replayed, replay
from penstock.triggers.book.on_postgres import trigger_of
from penstock.triggers.delivery import Act, LaunchOutcome, RunEnd
from penstock.triggers.host.acts import act_of
from penstock.triggers.host.past.on_postgres import PostgresPast
from penstock.triggers.host.starting import odd_of
from penstock.triggers.limits import Limits, limits_from

_STRETCH = 200  # passes that are read at once
_DELETED = "deleted"


def replay_trigger(
    connection: Connection, tenant_id: str, trigger_id: str, *, last: int
) -> Replayed:
    """What the recorded passes up to `last` come to for one trigger."""
    versions = _versions(connection, trigger_id)
    if not versions:
        return Replayed()
    reader = _Reader(connection, tenant_id, trigger_id, _types(versions), _limits(connection))
    first = versions[0].first_pass
    outcomes = _outcomes(connection, first, last)
    return replay(reader.passes(first, last), versions, outcomes, PostgresPast(connection))


@dataclass(frozen=True, slots=True)
class _Reader:
    connection: Connection
    tenant_id: str
    trigger_id: str
    types: list[str] | None  # None: any
    limits: list[tuple[int, Limits]]

    def passes(self, first: int, last: int) -> Iterator[RecordedPass]:
        """Recorded passes in order, read stretch by stretch."""
        after = first - 1
        while True:
            values = {"after": after, "to": last, "limit": _STRETCH}
            rows = self._rows("passes", values)
            if not rows:
                return
            yield from self._stretch(rows)
            after = rows[-1][0]

    def _stretch(self, rows: list[TupleRow]) -> Iterator[RecordedPass]:
        span: dict[str, Any] = {"first": rows[0][0], "last": rows[-1][0]}
        acts: dict[int, list[Act]] = defaultdict(list)
        for number, text in self._rows("acts", span):
            acts[number].append(act_of(text))
        ends: dict[int, list[RunEnd]] = defaultdict(list)
        for number, *end in self._rows("run_ends", span | {"trigger": self.trigger_id}):
            ends[number].append(RunEnd(*end))
        span["tenant"] = self.tenant_id
        held = {position for (position,) in self._rows("held_in", span)}
        new = self._events(rows[0][2], rows[-1][3])
        released = self._released([position for row in rows for position in row[5] or ()])
        place = 0
        for number, judged_at, _, to, due_limit, let_go in rows:
            admitted = [released[position] for position in let_go or () if position in released]
            while place < len(new) and new[place].position <= to:
                if new[place].position not in held:
                    admitted.append(new[place])
                place += 1
            limits = self.limits[bisect_right(self.limits, number, key=lambda each: each[0]) - 1]
            yield RecordedPass(
                number, judged_at, limits[1], admitted, acts[number], ends[number], due_limit
            )

    def _events(self, after: int, to: int) -> list[Stored]:
        values: dict[str, Parameter] = {
            "after": after, "to": to, "types": self.types, "tenant": self.tenant_id,
        }  # fmt: skip
        walk = sql.SQL(query("trigger_record", "between"))
        return read_events(self.connection, walk, values)[::-1]

    def _released(self, positions: list[int]) -> dict[int, Stored]:
        """Events that were let go after a wait, those that the trigger could want."""
        if not positions:
            return {}
        walk = sql.SQL(query("trigger_state", "at_positions"))
        found = read_events(self.connection, walk, {"positions": positions})
        return {
            stored.position: stored
            for stored in found
            if stored.envelope.tenant_id == self.tenant_id
            and (self.types is None or stored.envelope.type in self.types)
        }

    def _rows(self, name: str, values: dict[str, Any]) -> list[TupleRow]:
        return self.connection.execute(query("trigger_record", name), values).fetchall()


def _versions(connection: Connection, trigger_id: str) -> list[RecordedVersion]:
    """The versions that passes went by; of several that one pass first saw, the newest."""
    rows = connection.execute(query("trigger_record", "versions"), {"trigger": trigger_id})
    found = {
        row[10]: RecordedVersion(
            trigger_id, row[10], None if row[9] == _DELETED else trigger_of(row)
        )
        for row in rows
    }
    return [found[first_pass] for first_pass in sorted(found)]


def _types(versions: list[RecordedVersion]) -> list[str] | None:
    """The types that any version wants; None when one of them is a pattern."""
    wanted = {each.trigger.spec.event_type for each in versions if each.trigger is not None}
    return None if any(is_glob(each) for each in wanted) else sorted(wanted)


def _limits(connection: Connection) -> list[tuple[int, Limits]]:
    rows = connection.execute(query("trigger_record", "settings"))
    return [(first, limits_from(cast("JsonObject", load_stored(text)))) for first, text in rows]


def _outcomes(
    connection: Connection, first: int, last: int
) -> dict[tuple[int, str], LaunchOutcome]:
    """What did not go plainly; every other launch became its own run."""
    values = {"first": first, "last": last}
    rows = connection.execute(query("trigger_record", "outcomes"), values)
    return {(number, name): odd_of(attached, refused) for number, name, attached, refused in rows}
