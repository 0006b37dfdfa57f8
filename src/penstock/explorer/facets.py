"""Count the values that matching events have, so that a reader can click the next filter.

    keys   type, source, severity, tag.<key>; `tag` alone counts which tag keys there are

Counts are over the newest matching events up to a limit. `complete` says that those were all of
them; otherwise the counts are of a sample, and the answer says how large it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import JsonObject, Stored
from penstock.store.query import EventQuery, read_query

SAMPLE_MAX = 50_000
KEYS_MAX = 12
VALUES_DEFAULT = 20
KEYS_DEFAULT = ("type", "source", "severity")
_COLUMNS = ("type", "source", "severity", "tag")
_TAG = "tag."


@dataclass(frozen=True, slots=True)
class FacetValue:
    """One value, and how many of the sampled events have it."""

    value: str
    events: int


@dataclass(frozen=True, slots=True)
class Facet:
    """The commonest values of one key, and how many events have a value that is not listed."""

    key: str
    values: tuple[FacetValue, ...]
    others: int


@dataclass(frozen=True, slots=True)
class Facets:
    """All facets that were asked for, over one sample."""

    facets: tuple[Facet, ...]
    sampled: int
    complete: bool


def read_facets(
    params: Sequence[tuple[str, str]], *, tenant_id: str
) -> tuple[EventQuery, tuple[str, ...], int]:
    """The query, the keys and how many values of each, from HTTP parameters."""
    query, limit, cursor = read_query(params, tenant_id=tenant_id, also=("keys",))
    if cursor is not None:
        raise QueryInvalid("expected no cursor: facets have no pages", parameter="cursor")
    said = [part.strip() for name, value in params if name == "keys" for part in value.split(",")]
    keys = tuple(dict.fromkeys(key for key in said if key)) or KEYS_DEFAULT
    check_keys(keys)
    return query, keys, limit if any(name == "limit" for name, _ in params) else VALUES_DEFAULT


def check_keys(keys: Sequence[str]) -> None:
    """QueryInvalid for a key that has no facet."""
    if len(keys) > KEYS_MAX:
        raise QueryInvalid(f"expected at most {KEYS_MAX} keys, found {len(keys)}", parameter="keys")
    for key in keys:
        if key not in _COLUMNS and not (key.startswith(_TAG) and len(key) > len(_TAG)):
            raise QueryInvalid(
                f"expected type, source, severity, tag or tag.<key>, found {key[:80]!r}",
                parameter="keys",
            )


def tag_keys(keys: Iterable[str]) -> list[str]:
    """The tag keys among the keys of facets."""
    return [key.removeprefix(_TAG) for key in keys if key.startswith(_TAG)]


def count_facets(
    events: Sequence[Stored], keys: Sequence[str], limit: int, *, sample_max: int = SAMPLE_MAX
) -> Facets:
    """The facets of matching events, newest first: the specification of the SQL."""
    sample = events[:sample_max]
    tallies = {key: Counter(v for stored in sample for v in _values(stored, key)) for key in keys}
    return Facets(
        tuple(rank_values(key, tally.items(), limit) for key, tally in tallies.items()),
        sampled=len(sample),
        complete=len(sample) < sample_max,
    )


def rank_values(key: str, counted: Iterable[tuple[str, int]], limit: int) -> Facet:
    """The commonest values first; equals in the order of their characters."""
    ranked = sorted(counted, key=lambda pair: (-pair[1], pair[0]))
    values = tuple(FacetValue(value, events) for value, events in ranked[:limit])
    return Facet(key, values, others=sum(events for _, events in ranked[limit:]))


def facets_wire(found: Facets) -> JsonObject:
    """The answer as JSON."""
    return {
        "facets": {
            facet.key: {
                "values": [{"value": v.value, "count": v.events} for v in facet.values],
                "others": facet.others,
            }
            for facet in found.facets
        },
        "sampled": found.sampled,
        "complete": found.complete,
    }


def _values(stored: Stored, key: str) -> list[str]:
    event = stored.envelope
    if key == "tag":
        return list(event.tags)
    if key.startswith(_TAG):
        name = key.removeprefix(_TAG)
        return [event.tags[name]] if name in event.tags else []
    return [{"type": event.type, "source": event.source, "severity": str(stored.severity)}[key]]
