"""Register event types at run time, check what a new version would break, show what is registered.

A type can be published as soon as its registration is answered. Registering the same thing again
changes nothing. A version that breaks the one before it is refused unless it is overridden, with a
reason that is kept with the version and told in the operator's event.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.acts import record
from penstock.api.asking import Asked
from penstock.api.body import read_model
from penstock.api.context import house_of
from penstock.api.handlers.blindness import blinded
from penstock.api.reply import reply
from penstock.base.clock import format_instant
from penstock.base.errors import Fault, NotFound, QueryInvalid, SchemaInvalid
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.entry import entry_of
from penstock.registry.proposal import Override, Proposal
from penstock.registry.registry import Registry
from penstock.registry.review import DAYS_DEFAULT
from penstock.registry.schema import SchemaVersion
from penstock.store.privacy.marks import mark_faults
from penstock.store.query import LIMIT_DEFAULT, LIMIT_MAX, read_integer
from penstock.store.timetravel.moment import Moment, read_as_of, refuse_future

if TYPE_CHECKING:
    from penstock.house import House

_INSTANT = timedelta(microseconds=1)
_STATUSES = ("draft", "active", "deprecated")
_PARAMETERS = ("eventType", "status", "limit", "offset", "asOf")


class ProposedSchema(BaseModel):
    """A schema to check."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    event_type: str = Field(alias="eventType", max_length=200)
    document: dict[str, object] = Field(alias="schema", description="JSON Schema 2020-12")
    version: StrictInt | None = Field(None, description="default: the next one")
    days: StrictInt = Field(DAYS_DEFAULT, ge=1, le=3650, description="how old stored events may be")


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
    override: StrictBool = Field(False, description="register it although it breaks; needs reason")
    reason: str | None = Field(
        None, min_length=1, max_length=500, description="why a breaking change is meant"
    )

    @model_validator(mode="after")
    def _override_has_a_reason(self) -> Self:
        if self.override and not (self.reason or "").strip():
            raise ValueError("expected a reason beside override, found none")
        return self


async def list_schemas(request: Request, _caller: Caller) -> Response:
    """Every version of every type, by name."""
    given = _read(request)
    wanted, limit, offset = _chosen(given)
    registry, moment = await run_in_threadpool(_registry, house_of(request), given.get("asOf"))
    found = [
        version
        for version in registry.versions
        if version.status in wanted
        and given.get("eventType", version.event_type) == version.event_type
    ]
    shown: list[JsonValue] = [_shown(version) for version in found[offset : offset + limit]]
    data: JsonObject = {"schemas": shown, "total": len(found), "limit": limit, "offset": offset}
    if moment is not None:
        data["asOf"] = moment.to_json()
    return reply({"data": data})


async def show_type(request: Request, _caller: Caller) -> Response:
    """Everything known about one type: the data of its reference page."""
    house, event_type = house_of(request), request.path_params["event_type"]
    registry, said = await _as_asked(request)
    versions = registry.versions_of(event_type)
    if not versions:
        raise _unknown(registry, event_type, "a registered type")
    entry = entry_of(versions, house.book.declaration(event_type))
    return reply({"data": entry.wire() | said})


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


async def check(request: Request, caller: Caller) -> Response:
    """Say what registering a schema would break; nothing is registered."""
    wanted = await read_model(request, ProposedSchema)
    proposal = Proposal(
        event_type=wanted.event_type,
        schema=cast("JsonObject", wanted.document),
        version=wanted.version,
    )
    _check_marks(proposal.schema)
    review = partial(house_of(request).reviewer.review, proposal, tenant_id=caller.tenant_id)
    found = (await run_in_threadpool(review, days=wanted.days)).wire()
    return reply({"data": found | await _blinded(request, caller, proposal)})


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
        override=Override(wanted.reason) if wanted.override and wanted.reason else None,
    )
    _check_marks(proposal.schema)
    await run_in_threadpool(house.book.refresh)
    admitted = await run_in_threadpool(house.reviewer.admit, proposal, tenant_id=caller.tenant_id)
    warnings = await _blinded(request, caller, proposal)
    version, changed = await run_in_threadpool(house.book.register, admitted, by=caller.name)
    if changed or version.updated_by == caller.name:
        await _record(request, caller, version)
    return reply({"data": _shown(version) | warnings}, 201)


async def _blinded(request: Request, caller: Caller, proposal: Proposal) -> JsonObject:
    tenant_id, event_type = caller.tenant_id, proposal.event_type
    return await run_in_threadpool(
        blinded, house_of(request), tenant_id, event_type, proposal.schema
    )


def _check_marks(schema: JsonObject) -> None:
    """Refuse marks of personal data that could not be acted on."""
    faults = tuple(Fault(f"/schema{each.pointer}", each.detail) for each in mark_faults(schema))
    if faults:
        raise SchemaInvalid(f"{faults[0].pointer}: {faults[0].detail}", faults=faults)


async def _record(request: Request, caller: Caller, version: SchemaVersion) -> None:
    payload: JsonObject = {
        "eventType": version.event_type,
        "version": version.version,
        "status": version.status,
        "schemaHash": version.schema_hash,
    }
    if "override" in version.metadata:
        payload["override"] = version.metadata["override"]
    at = version.updated_at.isoformat()
    once = (version.event_type, str(version.version), version.schema_hash, version.status, at)
    await record(house_of(request), caller, "penstock.schema.registered", payload, once=once)


def _registry(house: House, as_of: str | None) -> tuple[Registry, Moment | None]:
    """The registry now, or as it was at the moment asked for."""
    if as_of is None:
        return house.book.refresh(), None
    asked, now = read_as_of(as_of, "asOf"), house.clock.now()
    head = house.history.head()
    refuse_future(asked, head=head, now=now, parameter="asOf")
    if not isinstance(asked, int):
        moment = Moment(house.history.locate(asked).position, min(asked, now))
    elif asked == head.position:
        moment = Moment(asked, now)
    else:
        # A position is the newest one until the next arrives; what was registered by then counts.
        following = house.history.locate(asked + 1).at
        moment = Moment(asked, now if following is None else following - _INSTANT)
    return house.book.as_of(cast("datetime", moment.at)), moment


async def _show(request: Request, number: int | None) -> Response:
    event_type = request.path_params["event_type"]
    registry, said = await _as_asked(request)
    found = registry.find(event_type, number)
    if found is None:
        which = "an active version" if number is None else f"version {number}"
        raise _unknown(registry, event_type, which)
    return reply({"data": _shown(found) | said})


async def _as_asked(request: Request) -> tuple[Registry, JsonObject]:
    """The registry as of the moment that a request for one type names, and what to say of it."""
    as_of = Asked(request, "asOf").one("asOf")
    registry, moment = await run_in_threadpool(_registry, house_of(request), as_of)
    return registry, {} if moment is None else {"asOf": moment.to_json()}


def _unknown(registry: Registry, event_type: str, wanted: str) -> NotFound:
    near = registry.nearest(event_type)
    hint = f"; the nearest known type is {near}" if near not in (None, event_type) else ""
    return NotFound(f"expected {wanted} of {event_type[:200]!r}, found none{hint}")


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
        "schemaId": version.id,
        "schema": version.schema,
        "schemaHash": version.schema_hash,
        "metadata": version.metadata,
        "createdAt": format_instant(version.created_at),
        "createdBy": version.created_by,
        "updatedAt": format_instant(version.updated_at),
        "updatedBy": version.updated_by,
    }
