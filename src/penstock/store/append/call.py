"""Put requests into the parameters of `append_batch`, and its answer into outcomes.

    requests ── batch_parameters ──▶ append_batch ──▶ Answer ── outcomes ──▶ one for each request

Pure. In a batch, events and criteria name their request by its number, events their own by theirs;
PostgreSQL counts rows from 1, so the numbers of events do.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
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
from penstock.store.append.packed import is_one_tag
from penstock.store.append.request import (
    CONFLICTS_SHOWN,
    Appended,
    Outcome,
    Request,
    id_taken,
    too_far,
)

BINARY_FORM = 1
BATCH_FORMS = (BINARY_FORM,) * 18
_INTEGER = struct.Struct("!i").pack


_Row: TypeAlias = tuple[int, str, Criterion, int, bool]  # request, tenant, criterion, after, exists


@dataclass(frozen=True, slots=True)
class Answer:
    """What `append_batch` says."""

    base: int = 0
    hits: Sequence[tuple[int, int, tuple[int, ...]]] = ()  # request, clause, positions
    known: dict[int, tuple[int, bool]] = field(default_factory=dict)  # event: place, same content
    dropped: frozenset[int] = frozenset()


def in_order(requests: Sequence[Request], base: int) -> list[Outcome]:
    """What became of each request when all were stored, one after the other."""
    found: list[Outcome] = []
    for request in requests:
        found.append(Appended(tuple([base + 1 + place for place in request.places])))
        base += len(request.entries)
    return found


def batch_parameters(
    requests: Sequence[Request], kind: int, *, is_again: bool = False
) -> list[bytes]:
    """The parameters of `append_batch`; what is sent again may be known, even by a new id."""
    owners = [n for n, request in enumerate(requests) for _ in request.entries]
    entries = [entry for request in requests for entry in request.entries]
    old = [(nth, e.accepted) for nth, e in enumerate(entries, 1) if is_again or not e.is_new]
    rows = [
        (n, request.tenant_id, *clause)
        for n, request in enumerate(requests)
        for clause in request.condition.clauses()
    ]
    simple = [row for row in rows if is_one_tag(row[2])]
    others = [row for row in rows if not is_one_tag(row[2])]
    words = [_words(row[2]) for row in others]
    return [
        _INTEGER(len(requests)),
        pack_integers(owners),
        pack_bytes([entry.row for entry in entries], kind),
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
