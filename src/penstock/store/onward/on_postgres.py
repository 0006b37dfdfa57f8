"""Find the way onward in PostgreSQL: which positions to look at, and how far that leads.

    with reading.tenant("acme") as connection:
        leg = find_leg(connection, query, span)      # positions of an index, or a piece of the log
        read_events(connection, leg.way.sql, leg.way.parameters | {"limit": 256})

An index is asked for positions only, a few hundred at most, which it answers without the events.
The filters are asked of each event as well, so it does not matter which index was taken.
"""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from penstock.sql import query as named
from penstock.store.onward.reach import Reach, Span, choose, entries_of, exact_types, far, reach
from penstock.store.query import EventQuery
from penstock.store.walk.choose import Parameter, Walk, candidates, filter_parameters
from penstock.store.walk.on_postgres import Connection, Way, filters, find_types, sources_of


@dataclass(frozen=True, slots=True)
class Leg:
    """A way through a span, and the span: everything that matches in it is on the way."""

    way: Way
    span: Span


def log_leg(query: EventQuery, span: Span) -> Leg:
    """Through the log itself, each event held against the filters."""
    parameters = filter_parameters(query, exact_types(query))
    return Leg(
        onward_way("onward_log", parameters | {"after": span.after, "until": span.until}), span
    )


def find_leg(connection: Connection, query: EventQuery, span: Span) -> Leg:
    """The way that leads furthest into a span for what there is to look at."""
    types = find_types(connection, query)
    found = choose(span, find_reaches(connection, query, span, candidates(query, types)))
    if found is None and not query.sources:
        # Nothing to walk by; but a small tenant in a long log is found by its sources.
        sources = Walk("source", tuple(sources_of(connection, query.tenant_id, most=None)))
        found = choose(span, find_reaches(connection, query, span, [sources]))
    if found is None:
        return log_leg(query, far(span))
    parameters = filter_parameters(query, types) | {"positions": found.positions}
    return Leg(onward_way("onward_at", parameters), Span(span.after, found.through))


def find_reaches(
    connection: Connection, query: EventQuery, span: Span, walks: list[Walk]
) -> list[Reach]:
    """Where each of these walks leads in a span."""
    asked = [(n, walk, value) for n, walk in enumerate(walks) for value in walk.values]
    parameters: dict[str, Parameter] = {
        "choices": [n for n, _, _ in asked],
        "indexes": [str(walk.index) for _, walk, _ in asked],
        "values": [value for _, _, value in asked],
        "entries": [entries_of(walk) for _, walk, _ in asked],
        "tenant": query.tenant_id,
        "after": span.after,
        "until": span.until,
    }
    found: dict[int, list[list[int]]] = {n: [] for n in range(len(walks))}
    if asked:
        rows = connection.execute(named("store", "probe_onward"), parameters, prepare=False)
        for choice, positions in rows:
            found[choice].append(positions)
    return [reach(span, found[n], entries_of(walk)) for n, walk in enumerate(walks)]


def onward_way(name: str, parameters: dict[str, Parameter]) -> Way:
    """One of the queries that lead onward, with its filters."""
    return Way(sql.SQL(named("store", name)).format(filters=filters()), parameters)
