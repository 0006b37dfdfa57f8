"""Find out who asks, as the guard of the route that was matched.

    Authorization: Bearer <secret> ──▶ Caller ──▶ has the scope? ──▶ handler
                                        └ 401        └ 403

Nothing here looks at the URL's text. `routes.mount` gives every handler its `Needs`, so a route
without one cannot be added; tests/api/test_route_matrix.py walks through them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection, Request

from penstock.access.token import ANYONE, Caller, Scope
from penstock.base.errors import AccessDenied
from penstock.envelope.envelope import DEFAULT_TENANT

if TYPE_CHECKING:
    from penstock.house import House

_SCHEME = "bearer "


@dataclass(frozen=True, slots=True)
class Needs:
    """A guard that lets callers with one scope through, or any caller when it is None."""

    scope: Scope | None

    async def __call__(self, request: Request) -> Caller:
        caller = await authenticate(request.app.state.house, bearer_of(request))
        require(caller, self.scope)
        return caller


def bearer_of(connection: HTTPConnection) -> str | None:
    """The secret in the Authorization header, if there is one in the right form."""
    header = connection.headers.get("authorization", "")
    return header[len(_SCHEME) :].strip() if header[: len(_SCHEME)].lower() == _SCHEME else None


async def authenticate(house: House, secret: str | None) -> Caller:
    """Who the secret belongs to; AccessDenied when nobody, StoreUnavailable when unknowable."""
    if house.settings.auth == "off":
        return ANYONE
    if not secret:
        raise AccessDenied("expected a bearer token, found none")
    caller = house.tokens.cached(secret)
    if caller is None:
        caller = await run_in_threadpool(house.tokens.find, secret)
    if caller is None:
        raise AccessDenied("expected a token that is known, unexpired and not revoked")
    return caller


def require(caller: Caller, scope: Scope | None) -> None:
    """Refuse a caller without the scope."""
    if scope is not None and not caller.may(scope):
        raise AccessDenied(
            f"expected a token with the scope {scope}, found one without it",
            known=True,
            remedy=f"Use a token with the scope {scope}; `penstock token create` makes one.",
        )


def require_platform(caller: Caller) -> None:
    """Refuse a caller of another tenant where an answer is about the platform as a whole."""
    if caller.tenant_id != DEFAULT_TENANT:
        raise AccessDenied(
            "expected a token of the platform's own tenant: these figures are about every tenant",
            known=True,
            remedy=f"Use a token of the tenant `{DEFAULT_TENANT}`.",
        )
