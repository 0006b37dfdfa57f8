"""Put requests into the parameters of `append_batch`, and its answer into outcomes.

    requests ── parameters ──▶ append_batch ──▶ Answer ── outcomes ──▶ one for each request

Pure. Events and criteria name their request by its number in the batch, events their own by theirs;
PostgreSQL counts rows from 1, so the numbers of events do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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

TEXT_FORM, BINARY_FORM = 0, 1
BATCH_FORMS = (TEXT_FORM, TEXT_FORM) + (BINARY_FORM,) * 12
ONE_FORMS = (TEXT_FORM,) * 6


@dataclass(frozen=True, slots=True)
class Answer:
    """What `append_batch` says."""

    base: int = 0
    hits: Sequence[tuple[int, int, tuple[int, ...]]] = ()  # request, clause, positions
    known: dict[int, tuple[int, bool]] = field(default_factory=dict)  # event: place, same content
    dropped: frozenset[int] = frozenset()


def is_simple(request: Request) -> bool:
    """Whether `append_one` can take it: one event, at most one criterion."""
    condition = request.condition
    return (
        len(request.entries) == 1 and len(condition.criteria) <= 1 and not condition.fail_if_exists
    )


def one_parameters(writer: bytes, request: Request) -> list[bytes | None]:
    """The parameters of `append_one`."""
    (entry,), criteria = request.entries, request.condition.criteria
    asked: list[bytes | None] = [None, None, None]
    if criteria:
        asked = [*_words(criteria[0]), b"%d" % (request.condition.after or 0)]
    return [writer, entry.row, b"t" if entry.is_new else b"f", *asked]


def batch_parameters(writer: bytes, requests: Sequence[Request]) -> list[bytes]:
    """The parameters of `append_batch`."""
    owners = [n for n, request in enumerate(requests) for _ in request.entries]
    entries = [entry for request in requests for entry in request.entries]
    old = [(nth, e.accepted) for nth, e in enumerate(entries, 1) if not e.is_new]
    clauses = [(n, r.tenant_id, c) for n, r in enumerate(requests) for c in r.condition.clauses()]
    words = [_words(criterion) for _, _, (criterion, _, _) in clauses]
    return [
        writer,
        b"%d" % len(requests),
        pack_integers(owners),
        pack_bytes([entry.row for entry in entries]),
        pack_integers([nth for nth, _ in old]),
        pack_bytes([accepted.envelope.tenant_id.encode() for _, accepted in old]),
        pack_bytes([accepted.envelope.id.encode() for _, accepted in old]),
        pack_bytes([accepted.content_hash for _, accepted in old], BYTEA),
        pack_integers([n for n, _, _ in clauses]),
        pack_integers([int(exists) for _, _, (_, _, exists) in clauses], INT2),
        pack_bytes([tenant.encode() for _, tenant, _ in clauses]),
        pack_bytes([tags for tags, _ in words]),
        pack_bytes([types for _, types in words]),
        pack_integers([after for _, _, (_, after, _) in clauses], INT8),
    ]


def _words(criterion: Criterion) -> tuple[bytes | None, bytes | None]:
    tags = [f"{key}:{value}" for key, value in criterion.tags]
    return literal(tags), literal(criterion.types)


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
