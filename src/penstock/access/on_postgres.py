"""Keep tokens and tickets in PostgreSQL, and remember for two seconds who a secret belongs to.

    find ── known and fresh ──▶ Caller
         ── else ask ──▶ Caller | None          StoreUnavailable only when nothing is known

Revoking takes effect everywhere within the two seconds. While PostgreSQL is away, callers who were
known go on (publishing needs no database), and whoever is not known is refused, never let in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import psycopg
from psycopg.rows import TupleRow

from penstock.access.token import (
    ANYONE,
    SECRET_LENGTH_MAX,
    SECRET_LENGTH_MIN,
    TICKET_SECONDS,
    Caller,
    Scope,
    TokenInfo,
    hash_token,
    is_secret,
    new_token,
)
from penstock.base.clock import Clock, SystemClock
from penstock.base.errors import NotFound, QueryInvalid, StoreUnavailable
from penstock.base.ids import uuid7
from penstock.base.on_postgres import Pool, answering
from penstock.sql import query

_FRESH_S = 2.0
_WAIT_S = 1.0
_KNOWN_MAX = 10_000

# Named here because TokenStore.list hides the builtin inside its class.
_Rows: TypeAlias = list[TupleRow]
Tokens: TypeAlias = list[TokenInfo]


@dataclass(slots=True)
class _Known:
    """A caller, and until when nobody needs to ask again."""

    caller: Caller
    expires_at: datetime | None
    good_until: float


class TokenStore:
    """Every token by the hash of its secret."""

    def __init__(
        self,
        owner_pool: Pool,
        *,
        clock: Clock | None = None,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool = owner_pool
        self._clock = clock or SystemClock()
        self._ticks = ticks
        self._known: dict[bytes, _Known] = {}
        self._away_until: float | None = None

    def create(
        self,
        name: str,
        tenant_id: str,
        scopes: Sequence[Scope],
        *,
        by: str,
        expires_at: datetime | None = None,
        secret: str | None = None,
    ) -> tuple[TokenInfo, str]:
        """Make a token; the secret comes back this once. A given secret is taken as it is."""
        text = new_token() if secret is None else secret
        if not is_secret(text):
            raise QueryInvalid(
                f"expected a secret of {SECRET_LENGTH_MIN} to {SECRET_LENGTH_MAX} characters, "
                f"found {len(text)}",
                parameter="secret",
            )
        values = {
            "id": uuid7(), "name": name, "hash": hash_token(text), "tenant_id": tenant_id,
            "scopes": [str(scope) for scope in scopes], "by": by, "expires_at": expires_at,
        }  # fmt: skip
        (row,) = self._rows("create_token", values)
        return _info(row), text

    def cached(self, secret: str) -> Caller | None:
        """The caller if known and fresh, without asking anybody: for the event loop."""
        known = self._known.get(hash_token(secret))
        if known is None or self._ticks() >= known.good_until:
            return None
        return self._unexpired(known)

    def find(self, secret: str) -> Caller | None:
        """Who the secret belongs to; None for nobody, revoked and expired."""
        if not is_secret(secret):
            return None
        key = hash_token(secret)
        known = self._known.get(key)
        if known is not None and self._ticks() < known.good_until:
            return self._unexpired(known)
        try:
            return self._ask(key, known)
        except StoreUnavailable:
            self._away_until = self._ticks() + _FRESH_S
            if known is None:
                raise
            known.good_until = self._ticks() + _FRESH_S
            return self._unexpired(known)

    def is_alive(self, token_id: str) -> bool:
        """Whether the token is neither revoked nor expired."""
        if token_id == ANYONE.token_id:
            return True
        ((alive,),) = self._rows("is_alive", {"id": token_id})
        return bool(alive)

    def list(self, tenant_id: str | None = None) -> Tokens:
        """Every token, or those of one tenant, oldest first."""
        return [_info(row) for row in self._rows("list_tokens", {"tenant_id": tenant_id})]

    def revoke(self, token_id: str, *, tenant_id: str | None = None) -> bool:
        """Make the token nobody's; whether it was somebody's before."""
        rows = self._rows("revoke_token", {"id": token_id, "tenant_id": tenant_id})
        if rows:
            for key in [k for k, v in self._known.items() if v.caller.token_id == token_id]:
                self._known.pop(key, None)
        return bool(rows)

    def ticket(self, token_id: str) -> str:
        """A ticket that opens one WebSocket as this token, once, within 30 seconds."""
        text = new_token()
        values = {"hash": hash_token(text), "token_id": token_id, "seconds": TICKET_SECONDS}
        try:
            with answering(), self._pool.connection(timeout=_WAIT_S) as connection:
                connection.execute(query("access", "create_ticket"), values)
        except psycopg.errors.ForeignKeyViolation:
            raise NotFound(f"expected a token, found none with id {token_id[:64]!r}") from None
        return text

    def redeem(self, ticket: str) -> Caller | None:
        """Take the ticket; None when it was taken before, is too old, or never was one."""
        if not is_secret(ticket):
            return None
        rows = self._rows("redeem_ticket", {"hash": hash_token(ticket)})
        return _caller(rows[0]) if rows else None

    def forget_tickets(self) -> None:
        """Sweep the tickets that nobody used in time."""
        with answering(), self._pool.connection(timeout=_WAIT_S) as connection:
            connection.execute(query("access", "forget_tickets"))

    def _ask(self, key: bytes, known: _Known | None) -> Caller | None:
        if self._away_until is not None and known is not None:
            # One asks whether PostgreSQL is back; the others go on meanwhile.
            known.good_until = self._ticks() + _FRESH_S
        elif self._away_until is not None and self._ticks() < self._away_until:
            raise StoreUnavailable("PostgreSQL did not answer a moment ago")
        rows = self._rows("find_token", {"hash": key})
        self._away_until = None
        if not rows:
            self._known.pop(key, None)
            return None
        caller = _caller(rows[0])
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[key] = _Known(caller, rows[0][4], self._ticks() + _FRESH_S)
        return caller

    def _unexpired(self, known: _Known) -> Caller | None:
        expired = known.expires_at is not None and known.expires_at <= self._clock.now()
        return None if expired else known.caller

    def _rows(self, name: str, values: Mapping[str, object]) -> _Rows:
        with answering(), self._pool.connection(timeout=_WAIT_S) as connection:
            return connection.execute(query("access", name), values).fetchall()


def _caller(row: TupleRow) -> Caller:
    token_id, name, tenant_id, scopes = row[:4]
    return Caller(token_id, name, tenant_id, frozenset(_scopes(scopes)))


def _info(row: TupleRow) -> TokenInfo:
    token_id, name, tenant_id, scopes, *rest = row
    return TokenInfo(token_id, name, tenant_id, _scopes(scopes), *rest)


def _scopes(words: Sequence[str]) -> tuple[Scope, ...]:
    """The scopes this version knows. A word it does not know grants nothing."""
    known = set(Scope)
    return tuple(Scope(word) for word in words if word in known)
