"""Put requests into the parameters of the two statements, and their answers into outcomes.

    requests ── quick_parameters ──▶ append_quick ──▶ the new head, or nothing: it was not so simple
             ── batch_parameters ──▶ append_batch ──▶ Answer ── outcomes ──▶ one for each request

Pure. In a batch, events and criteria name their request by its number, events their own by theirs;
PostgreSQL counts rows from 1, so the numbers of events do.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from penstock.base.errors import AppendConflict
from penstock.store.append.arrays import (
    BYTEA,
    INT2,
    INT8,
    literal,
    pack_bytes,
    pack_integers,
)
from penstock.store.append.condition import Criterion
from penstock.store.append.request import (
    CONFLICTS_SHOWN,
    Appended,
    Outcome,
    Request,
    id_taken,
    too_far,
)
from penstock.store.append.rows import pack_sources

BINARY_FORM = 1
BATCH_FORMS = (BINARY_FORM,) * 18
QUICK_FORMS = (BINARY_FORM,) * 7
_INTEGER = struct.Struct("!i").pack
_LONG = struct.Struct("!q").pack


_Row: TypeAlias = tuple[int, str, Criterion, int, bool]  # request, tenant, criterion, after, exists


@dataclass(frozen=True, slots=True)
class Answer:
    """What `append_batch` says."""

    base: int = 0
    hits: Sequence[tuple[int, int, tuple[int, ...]]] = ()  # request, clause, positions
    known: dict[int, tuple[int, bool]] = field(default_factory=dict)  # event: place, same content
    dropped: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Kinds:
    """The names of our own types on the wire; every database gives them others."""

    row: int
    source: int


def is_simple(requests: Sequence[Request], seen: int) -> bool:
    """Whether `append_quick` can check them: each criterion is one tag, after a known place."""
    return all(
        (request.condition.after or 0) <= seen
        and all(map(_is_one_tag, request.condition.criteria))
        and all(map(_is_one_tag, request.condition.fail_if_exists))
        for request in requests
    )


def quick_parameters(
    requests: Sequence[Request], kinds: Kinds, *, seen: int, now: datetime
) -> list[bytes]:
    """The parameters of `append_quick`; `seen` is where the head is if nobody else has written."""
    entries = [entry for request in requests for entry in request.entries]
    asked = [
        (request.tenant_id, f"{key}:{value}", after)
        for request in requests
        for criterion, after, _ in request.condition.clauses()
        for key, value in criterion.tags
    ]
    sources = pack_sources([entry.accepted.envelope for entry in entries], now)
    return [
        _LONG(seen),
        _LONG(len(entries)),
        pack_bytes([entry.row for entry in entries], kinds.row),
        pack_bytes([tenant.encode() for tenant, _, _ in asked]),
        pack_bytes([tag.encode() for _, tag, _ in asked]),
        pack_integers([after for _, _, after in asked], INT8),
        pack_bytes(sources, kinds.source),
    ]


def in_order(requests: Sequence[Request], base: int) -> list[Outcome]:
    """What became of each request when all were stored, one after the other."""
    found: list[Outcome] = []
    for request in requests:
        found.append(Appended(tuple([base + 1 + place for place in request.places])))
        base += len(request.entries)
    return found


def batch_parameters(requests: Sequence[Request], kinds: Kinds) -> list[bytes]:
    """The parameters of `append_batch`."""
    owners = [n for n, request in enumerate(requests) for _ in request.entries]
    entries = [entry for request in requests for entry in request.entries]
    old = [(nth, e.accepted) for nth, e in enumerate(entries, 1) if not e.is_new]
    rows = [
        (n, request.tenant_id, *clause)
        for n, request in enumerate(requests)
        for clause in request.condition.clauses()
    ]
    simple = [row for row in rows if _is_one_tag(row[2])]
    others = [row for row in rows if not _is_one_tag(row[2])]
    words = [_words(row[2]) for row in others]
    return [
        _INTEGER(len(requests)),
        pack_integers(owners),
        pack_bytes([entry.row for entry in entries], kinds.row),
        pack_integers([nth for nth, _ in old]),
        pack_bytes([accepted.envelope.tenant_id.encode() for _, accepted in old]),
        pack_bytes([accepted.envelope.id.encode() for _, accepted in old]),
        pack_bytes([accepted.content_hash for _, accepted in old], BYTEA),
        *_heads(simple),
        pack_bytes([tag.encode() for row in simple for tag in _tags(row[2].tags)]),
        _afters(simple),
        *_heads(others),
        pack_bytes([tags for tags, _ in words]),
        pack_bytes([types for _, types in words]),
        _afters(others),
    ]


def _heads(rows: Sequence[_Row]) -> tuple[bytes, bytes, bytes]:
    return (
        pack_integers([n for n, *_ in rows]),
        pack_integers([int(exists) for *_, exists in rows], INT2),
        pack_bytes([tenant.encode() for _, tenant, *_ in rows]),
    )


def _afters(rows: Sequence[_Row]) -> bytes:
    return pack_integers([after for _, _, _, after, _ in rows], INT8)


def _is_one_tag(criterion: Criterion) -> bool:
    return len(criterion.tags) == 1 and not criterion.types


def _tags(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{key}:{value}" for key, value in pairs]


def _words(criterion: Criterion) -> tuple[bytes | None, bytes | None]:
    return literal(_tags(criterion.tags)), literal(criterion.types)


def outcomes(requests: Sequence[Request], answer: Answer) -> list[Outcome]:
    """What became of each request."""
    found: list[Outcome] = []
    event, position = 0, answer.base
    for n, request in enumerate(requests):
        places: list[int] = []
        wrong: list[int] = []
        for entry in range(len(request.entries)):
            event += 1
            known = answer.known.get(event)
            if known is not None:
                places.append(known[0])
                if not known[1]:
                    wrong.append(entry)
            elif n not in answer.dropped:
                position += 1
                places.append(position)
        if n not in answer.dropped:
            found.append(Appended(tuple(places[place] for place in request.places)))
        elif wrong:
            nths = [nth for nth, place in enumerate(request.places) if place in wrong]
            found.append(id_taken(nths, request.entries[wrong[0]].accepted))
        else:
            found.append(_conflict(n, request, answer))
    return found


def _conflict(n: int, request: Request, answer: Answer) -> Outcome:
    """Why the request was dropped: the boundary moved, or something exists."""
    hits: tuple[set[int], set[int]] = (set(), set())
    for append, clause, positions in answer.hits:
        if append == n:
            if not positions:
                return too_far(request.condition, answer.base)
            hits[clause].update(positions)
    late, there = (tuple(sorted(each)[:CONFLICTS_SHOWN]) for each in hits)
    after = request.condition.after or 0
    return AppendConflict(late or there, after=after, exists=not late)
