"""Pack a request as `append_quick` takes it, before it is its turn.

    entries, condition ── pack ──▶ Packed ── joined with those of a batch ──▶ six parameters
                                      └── alone, and of one event ──▶ the four of `append_one`

Putting a batch together happens while all its callers wait, so what can be done beforehand is done
here: a request keeps its events and criteria as elements of the arrays to send. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from penstock.store.append.arrays import INT8, array_of, sized
from penstock.store.append.condition import Condition, Criterion

QUICK_FORMS = (1,) * 6  # all binary
ONE_FORMS = (1,) * 4
NEXT_FORMS = (1,) * 5  # and where the log ends
_LONG = struct.Struct("!q").pack
_LONG_ELEMENT = struct.Struct("!iq").pack


class Packed(NamedTuple):
    """A request whose criteria are one tag each, ready to be joined with others."""

    events: int
    rows: bytes
    criteria: int
    tenants: bytes
    tags: bytes
    afters: bytes
    after: int  # the furthest place that a criterion names
    alone: tuple[bytes, ...] | None  # the parameters of `append_one`; None: more than one event


def pack(tenant_id: str, rows: Sequence[bytes], condition: Condition) -> Packed | None:
    """The request; None when a criterion asks for more than one tag."""
    clauses = list(condition.clauses())
    if not all(is_one_tag(criterion) for criterion, _, _ in clauses):
        return None
    tenant, furthest = tenant_id.encode(), condition.after or 0
    tags = [f"{c.tags[0][0]}:{c.tags[0][1]}".encode() for c, _, _ in clauses]
    alone: tuple[bytes, ...] | None = None
    if len(rows) == 1 and len(tags) <= 1:
        # No tag is empty: where none is asked for, none is found.
        alone = (tenant, tags[0] if tags else b"", _LONG(furthest), rows[0])
    return Packed(
        len(rows),
        b"".join(map(sized, rows)),
        len(clauses),
        sized(tenant) * len(clauses),
        b"".join(map(sized, tags)),
        b"".join([_LONG_ELEMENT(8, after) for _, after, _ in clauses]),
        furthest,
        alone,
    )


def quick_parameters(batch: Sequence[Packed], kind: int) -> list[bytes]:
    """The parameters of `append_quick`; `kind` is what the database calls an `append_row`."""
    events, rows, criteria, tenants, tags, afters, furthest, _ = zip(*batch, strict=True)
    asked = sum(criteria)
    return [
        _LONG(max(furthest)),
        _LONG(sum(events)),
        array_of(b"".join(rows), sum(events), kind),
        array_of(b"".join(tenants), asked),
        array_of(b"".join(tags), asked),
        array_of(b"".join(afters), asked, INT8),
    ]


def is_one_tag(criterion: Criterion) -> bool:
    """Whether a criterion is one tag of any type, as nearly all are."""
    return len(criterion.tags) == 1 and not criterion.types
