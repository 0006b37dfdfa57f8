"""Answer like a Confluent schema registry, so that tools which know one can read our schemas.

    subject   an event type, or that and `-value`        version   1, 2, … or latest
    id        a number of its own for each version        schema    the JSON Schema, as text

A subset, for reading and checking: registering goes through POST /admin/event-schemas. Drafts are
not there. Failures are `{"error_code", "message"}`, and unknown query parameters are passed over,
as those tools expect. tests/api/test_registry_confluent.py asks what their clients ask.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.body import JSON, read_model
from penstock.api.context import house_of
from penstock.api.problems import RequestRefused, problem_of
from penstock.base.errors import NotInProfile, PenstockError, StoreUnavailable
from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.compatibility import breaks, compare
from penstock.registry.proposal import VERSION_MAX
from penstock.registry.registry import Registry
from penstock.registry.schema import (
    SCHEMA_BYTES_MAX,
    SCHEMA_DEPTH_MAX,
    SchemaVersion,
    compile_faults,
    schema_hash,
)

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

MEDIA = "application/vnd.schemaregistry.v1+json"
LEVEL = "BACKWARD"
_ACCEPTED = (MEDIA, "application/vnd.schemaregistry+json", JSON)
_KIND = "JSON"
_SUFFIX = "-value"
_DIGITS_MAX = 9


class GivenSchema(BaseModel):
    """A schema as those tools send it: text inside JSON."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str = Field(alias="schema", max_length=SCHEMA_BYTES_MAX)
    kind: str = Field(_KIND, alias="schemaType")


class Refusal(Exception):
    """An answer of theirs that says no."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message


def spoken(endpoint: Handler) -> Handler:
    """The endpoint with every failure in their words, a missing token included."""

    async def answering(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refusal as refusal:
            status, code, message = refusal.error_code // 100, refusal.error_code, refusal.message
            headers: dict[str, str] = {}
        except (PenstockError, RequestRefused) as error:
            problem = problem_of(error) if isinstance(error, PenstockError) else error.problem
            status, code, message = problem.status, problem.status, problem.detail
            code = 50001 if isinstance(error, StoreUnavailable) else code
            headers = dict(problem.headers)
        return _reply({"error_code": code, "message": message}, status, headers)

    return answering


async def list_subjects(request: Request, _caller: Caller) -> Response:
    """Every type that has a published version."""
    prefix = request.query_params.get("subjectPrefix", "")
    registry = await _current(request)
    names = dict.fromkeys(v.event_type for v in registry.versions if v.status != "draft")
    return _reply([name for name in names if name.startswith(prefix)])


async def list_versions(request: Request, _caller: Caller) -> Response:
    """The published versions of one subject."""
    return _reply([each.version for each in await _subject(request)])


async def show_version(request: Request, _caller: Caller) -> Response:
    """One version of a subject, with its schema as text."""
    found = _version(await _subject(request), request.path_params["version"])
    return _reply(_shown(request, found))


async def show_schema(request: Request, _caller: Caller) -> Response:
    """The schema of one version, bare."""
    found = _version(await _subject(request), request.path_params["version"])
    return _reply(found.schema)


async def show_id(request: Request, _caller: Caller) -> Response:
    """The schema that has this number."""
    found = await _numbered(request)
    return _reply({"schemaType": _KIND, "schema": encode(found.schema).decode()})


async def show_id_versions(request: Request, _caller: Caller) -> Response:
    """Which subject and version have this number."""
    found = await _numbered(request)
    return _reply([{"subject": found.event_type, "version": found.version}])


async def list_kinds(_request: Request, _caller: Caller) -> Response:
    """The kinds of schema there are."""
    return _reply([_KIND])


async def show_level(_request: Request, _caller: Caller) -> Response:
    """What a new version must keep: payloads that fitted before still fit."""
    return _reply({"compatibilityLevel": LEVEL})


async def show_config(request: Request, _caller: Caller) -> Response:
    """The same for one subject; it cannot be set."""
    await _subject(request)
    return _reply({"compatibilityLevel": LEVEL})


async def look_up(request: Request, _caller: Caller) -> Response:
    """The version of a subject that has this schema."""
    wanted = schema_hash(await _given(request))
    for each in reversed(await _subject(request)):
        if each.schema_hash == wanted:
            return _reply(_shown(request, each))
    raise Refusal(40403, "Schema not found")


async def check(request: Request, _caller: Caller) -> Response:
    """Whether a schema keeps what one version of a subject promised."""
    given = await _given(request)
    said, name = request.path_params["version"], request.path_params["subject"]
    versions = _versions_of(await _current(request), name)
    if not versions and said == "latest":
        return _reply({"is_compatible": True})  # nothing to compare with
    broken = breaks(compare(_version(_known(versions, name), said).schema, given))
    answer: JsonObject = {"is_compatible": not broken}
    if request.query_params.get("verbose", "false").lower() == "true":
        answer["messages"] = [each.sentence for each in broken]
    return _reply(answer)


async def _current(request: Request) -> Registry:
    return await run_in_threadpool(house_of(request).book.refresh)


async def _subject(request: Request) -> list[SchemaVersion]:
    name = request.path_params["subject"]
    return _known(_versions_of(await _current(request), name), name)


def _versions_of(registry: Registry, name: str) -> list[SchemaVersion]:
    """The published versions of a subject; a type may itself end in the suffix."""
    for event_type in (name, name.removesuffix(_SUFFIX)):
        found = [v for v in registry.versions_of(event_type) if v.status != "draft"]
        if found:
            return found
    return []


def _known(versions: list[SchemaVersion], name: str) -> list[SchemaVersion]:
    if not versions:
        raise Refusal(40401, f"Subject '{name[:200]}' not found.")
    return versions


def _version(versions: list[SchemaVersion], said: str) -> SchemaVersion:
    if said in ("latest", "-1"):
        active = [each for each in versions if each.status == "active"]
        return (active or versions)[-1]
    number = int(said) if _is_number(said) else 0
    if not 0 < number <= VERSION_MAX:
        raise Refusal(
            42202,
            f"The specified version '{said[:40]}' is not a valid version id. Allowed values are"
            ' between [1, 2^31-1] and the string "latest"',
        )
    for each in versions:
        if each.version == number:
            return each
    raise Refusal(40402, f"Version {number} not found.")


async def _numbered(request: Request) -> SchemaVersion:
    said = request.path_params["id"]
    number = int(said) if _is_number(said) else 0
    registry = await _current(request)
    for each in registry.versions:
        if each.id == number and each.status != "draft":
            return each
    raise Refusal(40403, f"Schema {said[:40]} not found")


async def _given(request: Request) -> JsonObject:
    """The schema of the body, if it is one."""
    given = await read_model(request, GivenSchema, *_ACCEPTED)
    if given.kind != _KIND:
        raise Refusal(42201, f"expected schemaType {_KIND}, found {given.kind[:40]!r}")
    raw = given.text.encode("utf-8", "replace")
    try:
        schema = decode(raw, bytes_max=SCHEMA_BYTES_MAX, depth_max=SCHEMA_DEPTH_MAX)
    except NotInProfile as error:
        raise Refusal(42201, f"Input schema is an invalid JSON schema: {error.detail}") from None
    for fault in compile_faults(schema):
        raise Refusal(42201, f"Input schema is an invalid JSON schema: {fault.detail}")
    return cast("JsonObject", schema)


def _shown(request: Request, version: SchemaVersion) -> JsonObject:
    return {
        "subject": request.path_params["subject"],
        "version": version.version,
        "id": version.id,
        "schemaType": _KIND,
        "schema": encode(version.schema).decode(),
    }


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX + 1


def _reply(value: JsonValue, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(encode(value), status, headers, MEDIA)
