"""Erase a subject: destroy its key, and record that without saying who it was."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.acts import record
from penstock.api.body import read_model
from penstock.api.context import house_of
from penstock.api.reply import reply
from penstock.base.clock import format_instant
from penstock.envelope.envelope import JsonObject
from penstock.store.privacy.erase import SUBJECT_CHARS_MAX, erase

ERASED = "privacy.subject.erased"


class NewErasure(BaseModel):
    """A subject to erase."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    subject: str = Field(
        min_length=1, max_length=SUBJECT_CHARS_MAX, description="its id, as payloads have it"
    )
    reason: str | None = Field(
        None, max_length=500, description="why; recorded, so it must not say who"
    )


async def create(request: Request, caller: Caller) -> Response:
    """Destroy the key of a subject of the caller's tenant; nobody can read its data again."""
    house = house_of(request)
    wanted = await read_model(request, NewErasure)
    done = await run_in_threadpool(
        erase, house.vault.root, house.erasable, caller.tenant_id, wanted.subject
    )
    said: JsonObject = {"subject": done.subject, "keys": done.keys, "deadLetters": done.letters}
    because: JsonObject = {} if wanted.reason is None else {"reason": wanted.reason}
    await record(house, caller, ERASED, said | because)
    erased_at = format_instant(done.erased_at)
    return reply({"data": {"erasure": said | {"erasedAt": erased_at}}}, 201)
