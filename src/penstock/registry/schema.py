"""Check payloads against JSON Schema 2020-12, compiled once per process.

    schema  ── compile_faults ──▶ () it may be registered  |  Fault… why not
    payload ── check_payload  ──▶ () it fits               |  Fault… where not, and why

A good payload costs about a microsecond. A bad one costs what listing its faults costs, which is
bounded by `weight`: neither a schema nor a payload can make a check take for ever. Patterns run in
linear time (no look-around, no back-references), and nothing outside the schema is ever fetched.
`format` is checked, not only noted. tests/registry/test_hostile_schemas.py holds it to this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import jsonschema_rs

from penstock.base.errors import Fault
from penstock.base.pointers import pointer
from penstock.envelope.codec import canonical
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry import faults
from penstock.registry.declare import Status
from penstock.registry.weight import weigh

SCHEMA_BYTES_MAX = 256 * 1024
SCHEMA_NODES_MAX = 5_000
SCHEMA_DEPTH_MAX = 64
FAULTS_MAX = 20

_WEIGHT_MAX = 5_000  # checks that one place of a payload may meet
_LIST_MAX = 100_000  # weight times nodes, up to which every fault is listed
_FIRST_MAX = 1_000_000  # …and up to which the first one is looked for
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=300_000)


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """One version of one event type's schema, as the registry keeps it."""

    event_type: str
    version: int
    status: Status
    schema: JsonObject
    schema_hash: str
    metadata: JsonObject  # purpose, sources, severity, tags, links, derivedRequires, needsUuid7, …
    created_at: datetime
    created_by: str
    updated_at: datetime
    updated_by: str
    id: int = 0  # a number of its own in the whole registry, given by the store


class PayloadCheck:
    """A compiled schema that is not registered; ValueError when it does not compile."""

    def __init__(self, schema: JsonObject) -> None:
        self._compiled = _compile(schema)

    def faults(self, payload: JsonValue) -> tuple[Fault, ...]:
        """Nothing if the payload fits, else where and why not."""
        return _check(self._compiled, payload)


@dataclass(frozen=True, slots=True)
class _Compiled:
    validator: jsonschema_rs.Validator
    schema: JsonObject
    weights: dict[int, int] = field(default_factory=dict)  # by depth of the payload

    def weight(self, depth: int) -> int:
        if depth not in self.weights:
            self.weights[depth] = weigh(self.schema, levels=depth)
        return self.weights[depth]


# By schema hash: a hash never means another schema, so an entry is never stale.
_compiled: dict[str, _Compiled] = {}


def schema_hash(schema: JsonObject) -> str:
    """SHA-256 of the canonical schema, in hex; the order of keys does not matter."""
    return hashlib.sha256(canonical(schema)).hexdigest()


def check_payload(schema_version: SchemaVersion, payload: JsonValue) -> tuple[Fault, ...]:
    """Nothing if the payload fits, else where and why not; pointers start at the payload."""
    compiled = _compiled.get(schema_version.schema_hash)
    if compiled is None:
        try:
            compiled = _compile(schema_version.schema)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            return (Fault("", f"expected a schema that compiles, found {_reason(error)}"),)
        _compiled[schema_version.schema_hash] = compiled
    return _check(compiled, payload)


def all_fit(schema_version: SchemaVersion, payloads: Sequence[JsonValue]) -> bool:
    """Whether `check_payload` would find nothing in any of them."""
    if check_payload(schema_version, payloads[0]):
        return False
    return all(map(_compiled[schema_version.schema_hash].validator.is_valid, payloads))


def compile_faults(schema: JsonValue) -> tuple[Fault, ...]:
    """Nothing if the schema may be registered, else what is wrong with it."""
    if not isinstance(schema, dict):
        return (Fault("", "expected a JSON Schema object, found something else"),)
    size = len(canonical(schema))
    if size > SCHEMA_BYTES_MAX:
        return (Fault("", f"expected at most {SCHEMA_BYTES_MAX} bytes, found {size}"),)
    nodes, depth = _measure(schema)
    if nodes > SCHEMA_NODES_MAX:
        return (Fault("", f"expected at most {SCHEMA_NODES_MAX} values, found {nodes}"),)
    if depth > SCHEMA_DEPTH_MAX:
        return (Fault("", f"expected at most {SCHEMA_DEPTH_MAX} levels, found {depth}"),)
    return _fault_of_compiling(schema)


def _fault_of_compiling(schema: JsonObject) -> tuple[Fault, ...]:
    try:
        _compile(schema)
    except jsonschema_rs.ValidationError as error:
        place = pointer(error.instance_path) or _outward_reference(schema)
        return (Fault(place, f"expected a valid schema, found {_reason(error)}"),)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        place = _outward_reference(schema)
        return (Fault(place, f"expected a valid schema, found {_reason(error)}"),)
    weight = weigh(schema)
    if weight > _WEIGHT_MAX:
        detail = f"expected at most {_WEIGHT_MAX} checks of one value, found references that make"
        return (Fault("", f"{detail} {weight} or more"),)
    return ()


def _compile(schema: JsonObject) -> _Compiled:
    validator = jsonschema_rs.validator_for(
        schema, validate_formats=True, pattern_options=_PATTERNS, offline=True
    )
    return _Compiled(validator, schema)


def _check(compiled: _Compiled, payload: JsonValue) -> tuple[Fault, ...]:
    return () if compiled.validator.is_valid(payload) else _list_faults(compiled, payload)


def _list_faults(compiled: _Compiled, payload: JsonValue) -> tuple[Fault, ...]:
    nodes, depth = _measure(payload)
    work = nodes * compiled.weight(depth)
    found: Iterable[jsonschema_rs.ValidationError] = ()
    if work <= _LIST_MAX:
        found = compiled.validator.iter_errors(payload)
    elif work <= _FIRST_MAX:
        try:
            compiled.validator.validate(payload)
        except jsonschema_rs.ValidationError as error:
            found = (error,)
    unsaid = Fault("", "expected a payload that fits the schema, found one that does not")
    return faults.faults(found, FAULTS_MAX) or (unsaid,)


def _measure(tree: JsonValue) -> tuple[int, int]:
    """How many values a tree holds, and how deep it goes."""
    nodes, depth = 0, 0
    level: list[JsonValue] = [tree]
    while level:
        nodes, depth = nodes + len(level), depth + 1
        below: list[JsonValue] = []
        for node in level:
            if isinstance(node, dict):
                below += node.values()
            elif isinstance(node, list):
                below += node
        level = below
    return nodes, depth


def _outward_reference(schema: JsonObject) -> str:
    """Where the first reference that leaves the schema stands; "" if none does."""
    waiting: list[tuple[str, JsonValue]] = [("", schema)]
    while waiting:
        place, node = waiting.pop(0)
        if isinstance(node, list):
            waiting += [(f"{place}/{index}", item) for index, item in enumerate(node)]
        elif isinstance(node, dict):
            reference = node.get("$ref", "#")
            if isinstance(reference, str) and not reference.startswith("#"):
                return f"{place}/$ref"
            waiting += [(place + pointer([key]), value) for key, value in node.items()]
    return ""


def _reason(error: Exception) -> str:
    """The first line of the compiler's complaint."""
    text = error.message if isinstance(error, jsonschema_rs.ValidationError) else str(error)
    return (text.splitlines() or [type(error).__name__])[0][:200]
