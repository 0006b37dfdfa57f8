"""Write a query as the fields of a trigger, so that it fires for what the query finds.

    listening_to(Query().type("ISSUE.*").tag("issueId", "42"))
        ──▶ {"eventType": "ISSUE.*", "predicates": [{"path": '$.tags["issueId"]', …}]}

The same value then means the same to the store, over HTTP, on the live stream and to a trigger;
tests/triggers/test_listening.py holds them together. A trigger judges what comes, so a stretch of
time and a past have no meaning to it, and jsonPath is PostgreSQL's own: those are refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.base.errors import QueryInvalid
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.envelope.names import glob_regex, is_glob, source_fault
from penstock.store.query import EventQuery, Query
from penstock.triggers.clause import LEAVES_MAX

_ANY = "**"


def listening_to(query: Query) -> JsonObject:
    """What a trigger says to listen to a query; QueryInvalid for what it could not ask."""
    asked = query.asked
    _refuse_what_is_past(asked)
    types, sources = asked.types, asked.sources
    found: JsonObject = {"eventType": types[0] if len(types) == 1 else _ANY}
    predicates: list[JsonValue] = [_of_types(types)] if len(types) > 1 else []
    if len(sources) == 1 and source_fault(sources[0]) is None:
        found["eventSource"] = sources[0]
    elif sources:
        predicates.append(_in("$.source", sources))
    if asked.severities:
        predicates.append(_in("$.severity", [str(each) for each in asked.severities]))
    if asked.correlation_id is not None:
        predicates.append(_equals("$.correlationId", asked.correlation_id))
    for key, value in dict.fromkeys(asked.tags):
        predicates.append(_equals(f"$.tags[{encode(key).decode()}]", value))
    if len(predicates) + len(types) > LEAVES_MAX:
        raise QueryInvalid(
            f"expected at most {LEAVES_MAX} comparisons in a trigger, found more", parameter="tag"
        )
    return found | ({"predicates": predicates} if predicates else {})


def _refuse_what_is_past(asked: EventQuery) -> None:
    said = {
        "from": asked.occurred_from,
        "to": asked.occurred_to,
        "asOf": asked.as_of_position if asked.as_of_instant is None else asked.as_of_instant,
        "jsonPath": asked.json_path,
    }
    for name, value in said.items():
        if value is not None:
            raise QueryInvalid(
                f"expected a query that a trigger can ask of each event, found {name}",
                parameter=name,
                remedy="Leave out times, asOf and jsonPath; compare payloads by `predicates`.",
            )


def _of_types(types: Sequence[str]) -> JsonValue:
    """One of several names and globs."""
    names = [name for name in types if not is_glob(name)]
    clauses: list[JsonValue] = [_in("$.type", names)] if names else []
    for glob in types:
        if is_glob(glob):
            inner = glob_regex(glob).removeprefix(r"\A").removesuffix(r"\Z")
            clauses.append({"path": "$.type", "operator": "regex", "value": f"^{inner}$"})
    return {"any": clauses}


def _in(path: str, values: Sequence[str]) -> JsonValue:
    return {"path": path, "operator": "in", "values": list(values)}


def _equals(path: str, value: str) -> JsonValue:
    return {"path": path, "operator": "equals", "value": value}
