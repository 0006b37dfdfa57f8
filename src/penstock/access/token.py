"""Hold who a caller is: a token's name, its tenant and its scopes.

    secret ── hash_token ──▶ what the database keeps          the secret itself is shown once
    Caller.may(scope)        admin may everything; whoever changes or runs workflows may read them

A token belongs to one tenant. An admin of the default tenant is the operator of the platform: only
they see figures of every tenant and hand out tokens for another one.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from penstock.base.errors import QueryInvalid
from penstock.envelope.envelope import DEFAULT_TENANT

SECRET_LENGTH_MIN = 24
SECRET_LENGTH_MAX = 512
TICKET_SECONDS = 30


class Scope(StrEnum):
    """What a token may do."""

    EVENTS_PUBLISH = "events:publish"
    EVENTS_READ = "events:read"
    EVENTS_READ_RAW = "events:read:raw"
    DEAD_LETTERS_REDRIVE = "dead-letters:redrive"
    SCHEMAS_WRITE = "schemas:write"
    TOKENS_MANAGE = "tokens:manage"
    PII_READ = "pii:read"
    WORKFLOWS_READ = "workflows:read"
    WORKFLOWS_WRITE = "workflows:write"
    WORKFLOWS_RUN = "workflows:run"
    ADMIN = "admin"


# What grants a scope beside itself; nothing else implies anything.
GRANTED_BY: dict[Scope, frozenset[Scope]] = {
    scope: frozenset({scope, Scope.ADMIN}) for scope in Scope
} | {
    Scope.WORKFLOWS_READ: frozenset(
        {Scope.WORKFLOWS_READ, Scope.WORKFLOWS_WRITE, Scope.WORKFLOWS_RUN, Scope.ADMIN}
    )
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as their token says."""

    token_id: str
    name: str
    tenant_id: str
    scopes: frozenset[Scope]

    def may(self, scope: Scope) -> bool:
        """Whether this token has the scope, or one that implies it."""
        return not self.scopes.isdisjoint(GRANTED_BY[scope])

    @property
    def is_operator(self) -> bool:
        """Whether this is an admin of the platform itself, not of one tenant on it."""
        return self.tenant_id == DEFAULT_TENANT and Scope.ADMIN in self.scopes


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """What is known about a token; never its secret."""

    id: str
    name: str
    tenant_id: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


# Whoever asks while PENSTOCK_AUTH=off, which settings allow on a loopback address only.
ANYONE = Caller("auth-off", "auth-off", DEFAULT_TENANT, frozenset({Scope.ADMIN}))


def new_token() -> str:
    """A secret of 256 random bits that is recognisable as ours."""
    return f"pst_{secrets.token_urlsafe(32)}"


def hash_token(text: str) -> bytes:
    """What is kept of a secret. Secrets are random, so a plain SHA-256 cannot be guessed back."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def is_secret(text: str) -> bool:
    """Whether the text could be a secret at all: long enough not to be guessed."""
    return SECRET_LENGTH_MIN <= len(text) <= SECRET_LENGTH_MAX


def read_scopes(words: Iterable[str]) -> tuple[Scope, ...]:
    """Scopes from their names, each once, in order; QueryInvalid names the unknown one."""
    found: dict[Scope, None] = {}
    for word in words:
        try:
            found[Scope(word)] = None
        except ValueError:
            known = ", ".join(Scope)
            raise QueryInvalid(
                f"expected one of {known}, found {word[:40]!r}", parameter="scopes"
            ) from None
    if not found:
        raise QueryInvalid("expected at least one scope, found none", parameter="scopes")
    return tuple(found)


def grant_fault(caller: Caller, scopes: Iterable[Scope], tenant_id: str) -> str | None:
    """Why the caller may not hand out such a token, or None. Nobody gives what they lack."""
    beyond = [scope for scope in scopes if not caller.may(scope)]
    if beyond:
        return f"expected scopes that this token has, found {', '.join(beyond)}"
    if tenant_id != caller.tenant_id and not caller.is_operator:
        return f"expected the token's own tenant {caller.tenant_id!r}, found {tenant_id[:64]!r}"
    return None
