"""Register event types at run time, and show what is registered.

A type can be published as soon as its registration is answered. Registering the same thing again
changes nothing and says so with 200 instead of 201.
"""

from __future__ import annotations

from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field, StrictInt
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.acts import record
from penstock.api.body import read_model
from penstock.api.context import house_of
from penstock.api.reply import reply
from penstock.base.clock import format_instant
from penstock.base.errors import NotFound, QueryInvalid
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.proposal import Proposal
from penstock.registry.schema import SchemaVersion
from penstock.store.query import LIMIT_DEFAULT, LIMIT_MAX, read_integer

_STATUSES = ("draft", "active", "deprecated")
_PARAMETERS = ("eventType", "status", "limit", "offset")


class NewSchema(BaseModel):
    """A schema to register."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    event_type: str = Field(alias="eventType", max_length=200)
    document: dict[str, object] = Field(alias="schema", description="JSON Schema 2020-12")
    version: StrictInt | None = Field(None, description="default: the next one")
    status: Literal["draft", "active", "deprecated"] | None = None
    metadata: dict[str, object] | None = Field(
        None, description="severity, links, tags, derivedRequires, needsUuid7, purpose, sources"
    )


async def list_schemas(request: Request, _caller: Caller) -> Response:
    """Every version of every type, by name."""
    given = _read(request)
    wanted, limit, offset = _chosen(given)
    registry = await run_in_threadpool(house_of(request).book.refresh)
    found = [
        version
        for version in registry.versions
        if version.status in wanted
        and given.get("eventType", version.event_type) == version.event_type
    ]
    shown: list[JsonValue] = [_shown(version) for version in found[offset : offset + limit]]
    data: JsonObject = {"schemas": shown, "total": len(found), "limit": limit, "offset": offset}
    return reply({"data": data})


async def show_latest(request: Request, _caller: Caller) -> Response:
    """The newest active version of one type."""
    return await _show(request, None)


async def show_version(request: Request, _caller: Caller) -> Response:
    """One version of one type, whatever its status."""
    text = request.path_params["version"]
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise QueryInvalid(
            f"expected a version number or latest, found {text[:40]!r}", parameter="version"
        )
    return await _show(request, int(text))


async def register(request: Request, caller: Caller) -> Response:
    """Register a schema; the type can be published at once."""
    house = house_of(request)
    wanted = await read_model(request, NewSchema)
    proposal = Proposal(
        event_type=wanted.event_type,
        schema=cast("JsonObject", wanted.document),
        version=wanted.version,
        status=wanted.status,
        metadata=cast("JsonObject | None", wanted.metadata),
    )
    version, changed = await run_in_threadpool(house.book.register, proposal, by=caller.name)
    if changed or version.updated_by == caller.name:
        await _record(request, caller, version)
    return reply({"data": _shown(version)}, 201 if changed else 200)


async def _record(request: Request, caller: Caller, version: SchemaVersion) -> None:
    payload: JsonObject = {
        "eventType": version.event_type,
        "version": version.version,
        "status": version.status,
        "schemaHash": version.schema_hash,
    }
    at = version.updated_at.isoformat()
    once = (version.event_type, str(version.version), version.schema_hash, version.status, at)
    await record(house_of(request), caller, "penstock.schema.registered", payload, once=once)


async def _show(request: Request, number: int | None) -> Response:
    event_type = request.path_params["event_type"]
    registry = await run_in_threadpool(house_of(request).book.refresh)
    found = registry.find(event_type, number)
    if found is None:
        which = "an active version" if number is None else f"version {number}"
        near = registry.nearest(event_type)
        hint = f"; the nearest known type is {near}" if near not in (None, event_type) else ""
        raise NotFound(f"expected {which} of {event_type[:200]!r}, found none{hint}")
    return reply({"data": _shown(found)})


def _read(request: Request) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in _PARAMETERS:
            known = ", ".join(_PARAMETERS)
            raise QueryInvalid(f"expected one of {known}, found {name[:64]!r}", parameter=name[:64])
        if name in given:
            raise QueryInvalid(f"expected {name} once", parameter=name)
        given[name] = value
    return given


def _chosen(given: dict[str, str]) -> tuple[tuple[str, ...], int, int]:
    wanted = tuple(given["status"].split(",")) if "status" in given else _STATUSES
    if not set(wanted) <= set(_STATUSES):
        raise QueryInvalid(f"expected some of {', '.join(_STATUSES)}", parameter="status")
    limit = max(1, min(LIMIT_MAX, _number(given, "limit", LIMIT_DEFAULT)))
    return wanted, limit, max(0, _number(given, "offset", 0))


def _number(given: dict[str, str], name: str, default: int) -> int:
    try:
        return read_integer(given[name]) if name in given else default
    except ValueError as error:
        raise QueryInvalid(str(error), parameter=name) from None


def _shown(version: SchemaVersion) -> JsonObject:
    return {
        "eventType": version.event_type,
        "version": version.version,
        "status": version.status,
        "schema": version.schema,
        "schemaHash": version.schema_hash,
        "metadata": version.metadata,
        "createdAt": format_instant(version.created_at),
        "createdBy": version.created_by,
        "updatedAt": format_instant(version.updated_at),
        "updatedBy": version.updated_by,
    }
