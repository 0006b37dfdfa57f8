"""Whatever is appended, repeated, refused, read and resumed: both logs answer alike.

The twin in memory takes one request after the other. On PostgreSQL they come alone, or in the
batches that the coordinator would make of them, through each of its statements.
Between examples the log is emptied, as nobody but the owner of the database can.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from tests.store.append.support import NOW, TYPES, appends_on, event, on_postgres

from penstock.base.errors import PenstockError
from penstock.envelope.envelope import JsonValue, Stored
from penstock.store.append.appends import Appends
from penstock.store.append.batch import take
from penstock.store.append.condition import Condition, Criterion
from penstock.store.append.in_memory import LogInMemory
from penstock.store.append.judging import Calling, Said
from penstock.store.append.request import Appended, Outcome, Request

_EMPTY = """
SET session_replication_role = replica; TRUNCATE workflow_events, event_tags;
SET session_replication_role = origin; UPDATE head SET position = 0
"""
tags = st.dictionaries(st.sampled_from(("show", "seat")), st.sampled_from("12"), max_size=2)
criteria = (
    st.builds(
        lambda types, pairs: Criterion(tuple(types), tuple(sorted(pairs.items()))),
        st.lists(st.sampled_from(TYPES[:2]), max_size=2, unique=True),
        tags,
    )
    .filter(lambda c: bool(c.types or c.tags))
)  # fmt: skip
several = st.lists(criteria, min_size=1, max_size=2).map(tuple)
events = st.lists(
    st.builds(
        lambda n, kind, tags, payload: (n, kind, tags, payload),
        st.none() | st.integers(0, 11), st.sampled_from(TYPES[:2]), tags, st.integers(0, 1),
    ),
    min_size=1, max_size=3,
)  # fmt: skip
back = st.none() | st.integers(-1, 6)  # how far `after` lies behind the head; -1 is beyond it
asked = st.tuples(st.sampled_from("ab"), events, st.none() | several, back, st.just(()) | several)


@dataclass
class Ticket:
    request: Request


def said(outcome: Outcome | PenstockError) -> Any:
    """What can be compared of an outcome."""
    if isinstance(outcome, Appended):
        return outcome.positions
    return type(outcome).__name__, str(outcome), outcome.faults, getattr(outcome, "positions", ())


def plain(stored: Stored) -> Any:
    """A stored event but for the time of the log it is in."""
    return stored.position, stored.envelope, stored.severity, stored.content_hash


class Machine(RuleBasedStateMachine):
    """Both logs, side by side."""

    database: ClassVar[str]
    real: ClassVar[Appends]

    def __init__(self) -> None:
        super().__init__()
        with psycopg.connect(self.database) as connection:
            connection.execute(_EMPTY)
        self.twin = appends_on(LogInMemory(lambda: NOW))
        self.seen = {"a": 0, "b": 0}

    @property
    def head(self) -> int:
        log = self.twin.log
        assert isinstance(log, LogInMemory)
        return len(log.events)

    def request(self, ask: Any) -> Request:
        tenant, wanted, meant, behind, exists = ask
        made: list[JsonValue] = [
            event(
                None if n is None else f"id-{n}", kind, tags=tags, payload={"n": payload},
                occurredAt="2026-03-01T10:30:00.000Z",
            )
            for n, kind, tags, payload in wanted
        ]  # fmt: skip
        condition = None
        if meant is not None:
            after = None if behind is None else max(0, self.head - behind)
            condition = Condition(meant, after, exists)
        return self.twin.prepare(Said(Calling(tenant), made, condition))

    @rule(
        ask=asked.filter(
            lambda ask: (
                len({n for n, *_ in ask[1] if n is not None})
                == len([n for n, *_ in ask[1] if n is not None])
            )
        )
    )
    def append(self, ask: Any) -> None:
        request = self.request(ask)
        assert [said(o) for o in self.real.log.commit([request])] == [
            said(o) for o in self.twin.log.commit([request])
        ]

    @rule(asks=st.lists(asked, min_size=2, max_size=6))
    def append_together(self, asks: list[Any]) -> None:
        waiting = deque(Ticket(r) for r in map(self.tried, asks) if r is not None)
        while waiting:
            batch = [ticket.request for ticket in take(waiting)]
            assert [said(o) for o in self.real.log.commit(batch)] == [
                said(o) for o in self.twin.log.commit(batch)
            ]

    def tried(self, ask: Any) -> Request | None:
        try:
            return self.request(ask)
        except PenstockError:
            return None  # one id with two contents, refused before any log hears of it

    @rule(
        tenant=st.sampled_from("ab"),
        meant=several,
        behind=st.integers(0, 9),
        limit=st.integers(1, 4),
    )
    def read(self, tenant: str, meant: Any, behind: int, limit: int) -> None:
        self.compare(tenant, meant, max(0, self.head - behind), limit)

    @rule(tenant=st.sampled_from("ab"), limit=st.integers(1, 5))
    def resume(self, tenant: str, limit: int) -> None:
        everything = tuple(Criterion((name,)) for name in TYPES[:2])
        self.seen[tenant] = self.compare(tenant, everything, self.seen[tenant], limit)

    def compare(self, tenant: str, meant: Any, after: int, limit: int) -> int:
        real = self.real.log.read(tenant, meant, after=after, limit=limit)
        twin = self.twin.log.read(tenant, meant, after=after, limit=limit)
        assert real.after == twin.after
        assert [plain(e) for e in real.events] == [plain(e) for e in twin.events]
        return real.after


@pytest.mark.usefixtures("template")
def test_both_logs_answer_alike_whatever_is_asked_of_them(
    shared_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.store.append.on_postgres._QUIET", 1)
    with on_postgres(shared_database) as real:
        Machine.real = real
        Machine.database = shared_database
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=60, stateful_step_count=20, deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )  # fmt: skip
