"""Judge several messages at once, each exactly as `judge` would alone.

    messages ── alike and plain? ── yes ──▶ column by column ──▶ Accepted…
                       └── no ──▶ judge, one by one

Most messages are plain: compact JSON, fields that keep their rules, a registered type, a payload
that fits. A column of those is checked with a few calls instead of a few for every message, by the
same rules and the same schemas. At the first doubt about any of them all are judged one by one, so
this module never refuses anything. tests/ingress/test_several.py holds it to `judge`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, cast

from penstock.base.ids import is_uuid7
from penstock.envelope.codec import decode_several
from penstock.envelope.envelope import DEFAULT_TENANT, Envelope, JsonObject, JsonValue
from penstock.envelope.fields import REQUIRED, RULES, read_instant
from penstock.envelope.form import json_forms
from penstock.ingress.enrich import enrichment
from penstock.ingress.pipeline import RESERVED, judge, judge_tree
from penstock.ingress.verdict import Accepted, Arrival, Verdict
from penstock.registry.registry import Registry
from penstock.registry.schema import SchemaVersion, all_fit

_SEVERAL: Final = 4  # fewer are done sooner one by one
_FEW_VALUES: Final = frozenset({"type", "source", "schemaVersion", "tenantId"})
_UNRULED: Final = frozenset({"occurredAt", "payload"})
_NOTHING: Final[JsonObject] = {}
_new = tuple.__new__  # an Envelope is made for every message, and its own way of making is slower


def judge_several(
    raws: Sequence[bytes],
    arrivals: Sequence[Arrival],
    registry: Registry,
    trees: Sequence[JsonValue] | None = None,
) -> list[Verdict]:
    """The verdict on each message; `trees` spares decoding what is decoded already."""
    several = len(raws) >= _SEVERAL
    plain = decode_several(raws) if several and trees is None else trees
    if several and plain is not None and set(map(type, plain)) == {dict}:
        found = _accept(cast("Sequence[JsonObject]", plain), arrivals, registry)
        if found is not None:
            return cast("list[Verdict]", found)
    if trees is None:
        return [judge(raw, at, registry) for raw, at in zip(raws, arrivals, strict=True)]
    return [
        judge_tree(tree, raw, at, registry)
        for tree, raw, at in zip(trees, raws, arrivals, strict=True)
    ]


def _accept(
    trees: Sequence[JsonObject], arrivals: Sequence[Arrival], registry: Registry
) -> list[Accepted] | None:
    """All of them, accepted; None when there is anything to say about one."""
    if not _keep_rules(trees):
        return None
    instants = _instants(trees, arrivals)
    tenants = _tenants(trees, arrivals)
    schemas = _schemas(trees, registry)
    if instants is None or tenants is None or schemas is None:
        return None
    payloads = [tree.get("payload", _NOTHING) for tree in trees]
    if not _payloads_fit(payloads, schemas):
        return None
    forms = json_forms(payloads)
    ids = _ids(trees, arrivals)
    if any(schema.metadata.get("needsUuid7") for schema in set_of(schemas)) and not all(
        map(is_uuid7, ids)
    ):
        return None
    enrich = enrichment().enrich
    envelopes = map(_envelope, trees, ids, instants, payloads, tenants)
    return list(map(enrich, envelopes, trees, forms, schemas))


def _keep_rules(trees: Sequence[JsonObject]) -> bool:
    """Whether every field of every message keeps its rule, and none is missing or unknown."""
    keys = set[str]().union(*trees)
    if not keys <= RULES.keys() or not all(key in tree for key in REQUIRED for tree in trees):
        return False
    for key in keys - _UNRULED:
        said: Iterable[JsonValue] = [tree[key] for tree in trees if key in tree]
        if key in _FEW_VALUES:
            try:
                said = set(cast("Any", said))
            except TypeError:  # an object or a list, which is no name
                return False
        if any(map(RULES[key], said)):
            return False
    return True


def _instants(
    trees: Sequence[JsonObject], arrivals: Sequence[Arrival]
) -> Sequence[datetime] | None:
    found = [
        read_instant(tree["occurredAt"]) if "occurredAt" in tree else at[0]
        for tree, at in zip(trees, arrivals, strict=True)
    ]
    if set(map(type, found)) != {datetime}:
        return None
    return cast("Sequence[datetime]", found)


def _tenants(trees: Sequence[JsonObject], arrivals: Sequence[Arrival]) -> list[str] | None:
    """The tenant of each; None when a message names another one than its token's."""
    found = []
    for tree, arrival in zip(trees, arrivals, strict=True):
        said = tree.get("tenantId")
        if said is not None and arrival.tenant_id not in (None, said):
            return None
        found.append(arrival.tenant_id or cast("str | None", said) or DEFAULT_TENANT)
    return found


def _schemas(trees: Sequence[JsonObject], registry: Registry) -> list[SchemaVersion] | None:
    """The schema of each; None when one has none, is reserved, or asks for a closer look."""
    named = [(tree["type"], tree.get("schemaVersion")) for tree in trees]
    found: dict[object, SchemaVersion] = {}
    for pair in set(cast("list[tuple[str, int | None]]", named)):
        schema = registry.find(*pair)
        if schema is None or pair[0].startswith(RESERVED) or "eventSource" in schema.metadata:
            return None
        found[pair] = schema
    return [found[pair] for pair in named]


def set_of(schemas: Sequence[SchemaVersion]) -> list[SchemaVersion]:
    """Each of them once."""
    return list({id(schema): schema for schema in schemas}.values())


def _payloads_fit(payloads: Sequence[JsonValue], schemas: Sequence[SchemaVersion]) -> bool:
    kinds = set_of(schemas)
    if len(kinds) == 1:
        return all_fit(kinds[0], payloads)
    return all(
        all_fit(kind, [p for p, schema in zip(payloads, schemas, strict=True) if schema is kind])
        for kind in kinds
    )


def _ids(trees: Sequence[JsonObject], arrivals: Sequence[Arrival]) -> list[str]:
    return [
        cast("str", tree["id"]) if "id" in tree else at.assigned_id
        for tree, at in zip(trees, arrivals, strict=True)
    ]


def _envelope(
    tree: JsonObject, event_id: str, at: datetime, payload: JsonValue, tenant_id: str
) -> Envelope:
    said: Any = tree.get  # the rules have seen to the types
    return _new(
        Envelope,
        (
            event_id, said("type"), said("source"), at, payload, said("tags", _NOTHING),
            said("correlationId"), said("causationId"), said("traceparent"), said("ttl"),
            said("metadata", _NOTHING), said("schemaVersion"), tenant_id,
        ),
    )  # fmt: skip
