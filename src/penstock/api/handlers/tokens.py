"""Hand out and take back tokens, and give tickets for WebSockets.

A token's secret is in the answer that makes it, and nowhere else ever. Nobody hands out a scope
they lack; an admin of one tenant sees and makes tokens of that tenant only.
"""

from __future__ import annotations

import secrets
from datetime import timedelta

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import (
    ANYONE,
    TICKET_SECONDS,
    Caller,
    TokenInfo,
    grant_fault,
    read_scopes,
)
from penstock.api.acts import record
from penstock.api.body import body_invalid, read_bytes, read_model
from penstock.api.context import house_of
from penstock.api.reply import reply
from penstock.base.clock import format_instant
from penstock.base.errors import AccessDenied, Fault, NotFound, QueryInvalid, QueueUnavailable
from penstock.envelope.check import is_tenant
from penstock.envelope.envelope import JsonObject


class NewToken(BaseModel):
    """A token to make."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    name: str = Field(min_length=1, max_length=100, description="who will use it")
    scopes: list[str] = Field(min_length=1, max_length=20, description="what it may do")
    tenant_id: str | None = Field(
        None, alias="tenantId", description="whose events; default: the caller's tenant"
    )
    expires_at: AwareDatetime | None = Field(
        None, alias="expiresAt", description="when it ends; default: never"
    )


async def list_tokens(request: Request, caller: Caller) -> Response:
    """Every token the caller may know of, without secrets."""
    tenant_id = None if caller.is_operator else caller.tenant_id
    tokens = await run_in_threadpool(house_of(request).tokens.list, tenant_id)
    return reply({"data": {"tokens": [_shown(info) for info in tokens]}})


async def create_token(request: Request, caller: Caller) -> Response:
    """Make a token; its secret is in this answer only."""
    house = house_of(request)
    wanted = await read_model(request, NewToken)
    scopes, tenant_id = read_scopes(wanted.scopes), wanted.tenant_id or caller.tenant_id
    if not is_tenant(tenant_id):
        raise QueryInvalid(
            f"expected a tenant's name, found {tenant_id[:64]!r}", parameter="tenantId"
        )
    if wanted.expires_at is not None and wanted.expires_at <= house.clock.now():
        said = f"expected a time to come, found {format_instant(wanted.expires_at)}"
        raise body_invalid([Fault("/expiresAt", said)])
    fault = grant_fault(caller, scopes, tenant_id)
    if fault is not None:
        raise AccessDenied(fault, known=True, remedy="Ask somebody whose token has them.")
    info, secret = await run_in_threadpool(
        house.tokens.create, wanted.name, tenant_id, scopes,
        by=caller.name, expires_at=wanted.expires_at,
    )  # fmt: skip
    try:
        await record(house, caller, "penstock.token.created", _named(info), once=(info.id,))
    except QueueUnavailable:
        # Nobody will ever see its secret; a token without its event must not stay.
        await run_in_threadpool(house.tokens.revoke, info.id)
        raise
    return reply({"data": {"token": {**_shown(info), "secret": secret}}}, 201)


async def revoke_token(request: Request, caller: Caller) -> Response:
    """Make a token nobody's, everywhere, within seconds."""
    house, token_id = house_of(request), request.path_params["token_id"]
    tenant_id = None if caller.is_operator else caller.tenant_id
    tokens = await run_in_threadpool(house.tokens.list, tenant_id)
    known = next((info for info in tokens if info.id == token_id), None)
    if known is None:
        raise NotFound(f"expected a token, found none with id {token_id[:64]!r}")
    await run_in_threadpool(house.tokens.revoke, token_id, tenant_id=tenant_id)
    await record(house, caller, "penstock.token.revoked", _named(known), once=(token_id,))
    return reply({"data": {"id": token_id, "revoked": True}})


async def create_ticket(request: Request, caller: Caller) -> Response:
    """A ticket that opens one WebSocket, once, within half a minute."""
    house = house_of(request)
    await read_bytes(request)
    if caller is ANYONE:
        ticket = secrets.token_urlsafe(32)  # nothing to open: every WebSocket is let in
    else:
        ticket = await run_in_threadpool(house.tokens.ticket, caller.token_id)
    expires_at = house.clock.now() + timedelta(seconds=TICKET_SECONDS)
    data: JsonObject = {"ticket": ticket, "expiresAt": format_instant(expires_at)}
    return reply({"data": data}, 201)


def _named(info: TokenInfo) -> JsonObject:
    return {
        "tokenId": info.id,
        "name": info.name,
        "tenantId": info.tenant_id,
        "scopes": [str(scope) for scope in info.scopes],
    }


def _shown(info: TokenInfo) -> JsonObject:
    instants = {
        "createdAt": info.created_at,
        "expiresAt": info.expires_at,
        "revokedAt": info.revoked_at,
        "lastUsedAt": info.last_used_at,
    }
    return {
        "id": info.id,
        "name": info.name,
        "tenantId": info.tenant_id,
        "scopes": [str(scope) for scope in info.scopes],
        "createdBy": info.created_by,
        **{name: None if at is None else format_instant(at) for name, at in instants.items()},
    }
