"""Show what was rejected, by message and by cause, and let it in again.

A message is kept verbatim, and may hold what its publisher should not have sent; so `raw` is shown
to those with the scope `events:read:raw` only, and is null to others.
"""

from __future__ import annotations

import base64

from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller, Scope
from penstock.api.acts import record
from penstock.api.body import read_model
from penstock.api.context import house_of
from penstock.api.reply import next_link, page_of, reply
from penstock.base.clock import format_instant
from penstock.base.errors import NotFound, QueryInvalid
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.store.deadletters.letter import DeadLetter, LetterFilter, LetterGroup
from penstock.store.query import LIMIT_DEFAULT, LIMIT_MAX, read_integer

_FILTERS = ("reason", "source", "type", "via")
_REDRIVEN: dict[str, bool | None] = {"false": False, "true": True, "any": None}
_VALUE_MAX = 500


class Which(BaseModel):
    """Which dead letters are meant; what is left out means any."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reason: str | None = Field(default=None, max_length=_VALUE_MAX)
    source: str | None = Field(default=None, max_length=_VALUE_MAX)
    type: str | None = Field(default=None, max_length=_VALUE_MAX)
    via: str | None = Field(default=None, max_length=_VALUE_MAX)


class Redrive(BaseModel):
    """What to redrive: these ids, or whatever matches the filter (an empty one: everything)."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    ids: list[str] | None = Field(default=None, min_length=1, max_length=10_000)
    filter: Which | None = None
    dry_run: bool = Field(False, alias="dryRun", strict=True)


async def list_letters(request: Request, caller: Caller) -> Response:
    """Dead letters, newest first."""
    which, limit, cursor = _read(request)
    letters = house_of(request).dead_letters
    page = await run_in_threadpool(
        letters.page, caller.tenant_id, which, limit=limit, cursor=cursor
    )
    shows_raw = caller.may(Scope.EVENTS_READ_RAW)
    shown: list[JsonValue] = [_shown(letter, shows_raw) for letter in page.letters]
    data: JsonObject = {
        "deadLetters": shown,
        "page": page_of(page.next_cursor, page.has_more, page.limit),
    }
    return reply({"data": data}, headers=next_link(request, page.next_cursor))


async def list_groups(request: Request, caller: Caller) -> Response:
    """Dead letters by cause, most messages first."""
    which, _, _ = _read(request)
    letters = house_of(request).dead_letters
    groups = await run_in_threadpool(letters.groups, caller.tenant_id, which)
    return reply({"data": {"groups": [_group(group) for group in groups]}})


async def show_letter(request: Request, caller: Caller) -> Response:
    """One dead letter."""
    letter_id = request.path_params["letter_id"]
    letters = house_of(request).dead_letters
    letter = await run_in_threadpool(letters.by_id, caller.tenant_id, letter_id)
    if letter is None:
        raise NotFound(f"expected a dead letter, found none with id {letter_id[:64]!r}")
    return reply({"data": {"deadLetter": _shown(letter, caller.may(Scope.EVENTS_READ_RAW))}})


async def redrive(request: Request, caller: Caller) -> Response:
    """Let in again what fits now, or say what would happen."""
    house = house_of(request)
    wanted = await read_model(request, Redrive)
    if (wanted.ids is None) == (wanted.filter is None):
        raise QueryInvalid("expected either ids or filter", parameter="ids")
    which = _which(wanted)
    report = await run_in_threadpool(
        house.redriver.redrive, caller.tenant_id, which, dry_run=wanted.dry_run
    )
    if not wanted.dry_run:
        await _record(request, caller, wanted, report.redriven, report.would_fail)
    failing: list[JsonValue] = [
        {"id": letter_id, "reason": str(reason)} for letter_id, reason in report.still_failing
    ]
    data: JsonObject = {
        "wouldPass": report.would_pass,
        "wouldFail": report.would_fail,
        "redriven": report.redriven,
        "stillFailing": failing,
    }
    return reply({"data": data})


async def _record(
    request: Request, caller: Caller, wanted: Redrive, redriven: int, failing: int
) -> None:
    chosen = wanted.filter.model_dump(exclude_none=True) if wanted.filter is not None else {}
    payload: JsonObject = {
        "filter": chosen if wanted.ids is None else None,
        "ids": None if wanted.ids is None else len(wanted.ids),
        "redriven": redriven,
        "stillFailing": failing,
    }
    await record(house_of(request), caller, "penstock.dead-letters.redriven", payload)


def _which(wanted: Redrive) -> LetterFilter:
    """The letters meant; those that were let in before are never meant again."""
    if wanted.ids is not None:
        return LetterFilter(ids=tuple(wanted.ids))
    chosen = wanted.filter or Which()
    return LetterFilter(chosen.reason, chosen.source, chosen.type, chosen.via)


def _read(request: Request) -> tuple[LetterFilter, int, str | None]:
    """The filter, page size and cursor that the parameters ask for."""
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in (*_FILTERS, "redriven", "limit", "cursor"):
            known = ", ".join((*_FILTERS, "redriven", "limit", "cursor"))
            raise QueryInvalid(f"expected one of {known}, found {name[:64]!r}", parameter=name[:64])
        if name in given or not value or len(value) > _VALUE_MAX or "\0" in value:
            raise QueryInvalid(f"expected one value for {name}", parameter=name)
        given[name] = value
    if given.get("redriven", "false") not in _REDRIVEN:
        raise QueryInvalid("expected true, false or any", parameter="redriven")
    which = LetterFilter(
        reason=given.get("reason"),
        source=given.get("source"),
        type=given.get("type"),
        via=given.get("via"),
        redriven=_REDRIVEN[given.get("redriven", "false")],
    )
    return which, _limit(given.get("limit")), given.get("cursor")


def _limit(text: str | None) -> int:
    try:
        return LIMIT_DEFAULT if text is None else max(1, min(LIMIT_MAX, read_integer(text)))
    except ValueError as error:
        raise QueryInvalid(str(error), parameter="limit") from None


def _shown(letter: DeadLetter, shows_raw: bool) -> JsonObject:
    return {
        "id": letter.id,
        "reason": letter.reason,
        "detail": letter.detail,
        "pointer": letter.pointer,
        "type": letter.type,
        "source": letter.source,
        "eventId": letter.event_id,
        "raw": base64.b64encode(letter.raw).decode() if shows_raw else None,
        "rawBytes": len(letter.raw),
        "via": letter.via,
        "firstSeenAt": format_instant(letter.first_seen_at),
        "lastSeenAt": format_instant(letter.last_seen_at),
        "count": letter.count,
        "redrivenAt": None if letter.redriven_at is None else format_instant(letter.redriven_at),
        "redrivenId": letter.redriven_id,
    }


def _group(group: LetterGroup) -> JsonObject:
    return {
        "reason": group.reason,
        "type": group.type,
        "source": group.source,
        "pointer": group.pointer,
        "detail": group.detail,
        "messages": group.messages,
        "letters": group.letters,
        "firstSeenAt": format_instant(group.first_seen_at),
        "lastSeenAt": format_instant(group.last_seen_at),
        "sampleId": group.sample_id,
    }
