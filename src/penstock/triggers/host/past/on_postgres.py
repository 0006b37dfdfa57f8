"""Answer what decisions ask of the past: fetched at once for a whole pass, or one by one.

    past = PostgresPast(connection)
    past.fetch_events(positions_due(state, inputs))      one statement
    past.fetch(wanted(state, inputs, past))              one statement for each kind of question
    run_pass(state, inputs, past, start)                 from memory; a rare miss asks

The answers are of the moment before the pass: nothing of it is written until it is decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeAlias

from psycopg import sql

from penstock.envelope.envelope import Stored
from penstock.sql import query
from penstock.store.on_postgres import read_events
from penstock.store.walk.on_postgres import Connection
from penstock.triggers.inputs import Holder, Wants
from penstock.triggers.past import DEPTH_COUNTED_MAX

_Key: TypeAlias = tuple[str, str, bool]
_Since: TypeAlias = tuple[str, datetime, bool]


class PostgresPast:
    """The past of one pass, remembered as far as it was fetched."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._events: dict[int, Stored | None] = {}
        self._holders: dict[_Key, Holder | None] = {}
        self._chains: dict[_Key, tuple[int, bool]] = {}
        self._depths: dict[int, int] = {}
        self._times: dict[_Since, list[datetime]] = {}

    def fetch_events(self, positions: Sequence[int]) -> None:
        """Read the events of earlier positions."""
        if not positions:
            return
        self._events |= dict.fromkeys(positions)
        walk = sql.SQL(query("trigger_state", "at_positions"))
        for stored in read_events(
            self._connection, walk, {"positions": list(positions)}, prepare=True
        ):
            self._events[stored.position] = stored

    def fetch(self, wants: Wants) -> None:
        """Read what the pass is likely to ask."""
        self._fetch_holders(wants.keys)
        self._fetch_chains(wants.correlations)
        self._fetch_depths(wants.causes)
        self._fetch_times(wants.times)

    def event_at(self, position: int) -> Stored | None:
        if position not in self._events:
            self.fetch_events([position])
        return self._events[position]

    def holder_of(self, trigger_id: str, key: str, *, shadow: bool) -> Holder | None:
        asked = (trigger_id, key, shadow)
        if asked not in self._holders:
            self._fetch_holders((asked,))
        return self._holders[asked]

    def launches_in(self, trigger_id: str, correlation_id: str, *, shadow: bool) -> int:
        return self._chain((trigger_id, correlation_id, shadow))[0]

    def is_loop_told(self, trigger_id: str, correlation_id: str) -> bool:
        live = (trigger_id, correlation_id, False)
        shadow = (trigger_id, correlation_id, True)
        return self._chain(shadow if shadow in self._chains else live)[1]

    def depth_of(self, stored: Stored) -> int:
        if stored.envelope.causation_id is None:
            return 0
        if stored.position not in self._depths:
            self._fetch_depths((stored,))
        return self._depths[stored.position]

    def launch_times(self, trigger_id: str, since: datetime, *, shadow: bool) -> Sequence[datetime]:
        asked = (trigger_id, since, shadow)
        if asked not in self._times:
            self._fetch_times((asked,))
        return self._times[asked]

    def _chain(self, asked: _Key) -> tuple[int, bool]:
        if asked not in self._chains:
            self._fetch_chains((asked,))
        return self._chains[asked]

    def _fetch_holders(self, asked: Iterable[_Key]) -> None:
        keys = list(asked)
        if not keys:
            return
        triggers, words, shadows = zip(*keys, strict=True)
        values = {"triggers": list(triggers), "keys": list(words), "shadows": list(shadows)}
        self._holders |= dict.fromkeys(keys)
        for trigger_id, key, shadow, delivery_id, run_id in self._connection.execute(
            query("trigger_state", "holders"), values
        ):
            self._holders[trigger_id, key, shadow] = Holder(delivery_id, run_id)

    def _fetch_chains(self, asked: Iterable[_Key]) -> None:
        keys = list(asked)
        if not keys:
            return
        triggers, words, shadows = zip(*keys, strict=True)
        values = {"triggers": list(triggers), "correlations": list(words), "shadows": list(shadows)}
        for trigger_id, correlation_id, shadow, launches, told in self._connection.execute(
            query("trigger_state", "chains"), values
        ):
            self._chains[trigger_id, correlation_id, shadow] = (launches, told)

    def _fetch_depths(self, causes: Iterable[Stored]) -> None:
        asked = [stored for stored in causes if stored.envelope.causation_id is not None]
        if not asked:
            return
        values = {
            "positions": [stored.position for stored in asked],
            "tenants": [stored.envelope.tenant_id for stored in asked],
            "ids": [stored.envelope.id for stored in asked],
            "causes": [stored.envelope.causation_id for stored in asked],
            "most": DEPTH_COUNTED_MAX,
        }
        self._depths |= dict(
            self._connection.execute(query("trigger_state", "depths"), values).fetchall()
        )

    def _fetch_times(self, asked: Iterable[_Since]) -> None:
        keys = list(asked)
        if not keys:
            return
        triggers, sinces, shadows = zip(*keys, strict=True)
        values = {"triggers": list(triggers), "sinces": list(sinces), "shadows": list(shadows)}
        self._times |= {key: [] for key in keys}
        for trigger_id, since, shadow, at in self._connection.execute(
            query("trigger_state", "times"), values
        ):
            self._times[trigger_id, since, shadow].append(at)
