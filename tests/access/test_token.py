"""Scopes grant exactly what they say, and nobody hands out what they lack."""

from __future__ import annotations

import itertools

import pytest

from penstock.access.token import (
    ANYONE,
    Caller,
    Scope,
    grant_fault,
    hash_token,
    is_secret,
    new_token,
    read_scopes,
)
from penstock.base.errors import QueryInvalid


def caller(*scopes: Scope, tenant_id: str = "default") -> Caller:
    return Caller("t1", "test", tenant_id, frozenset(scopes))


@pytest.mark.parametrize(("held", "asked"), list(itertools.product(Scope, Scope)))
def test_a_scope_grants_itself_and_only_admin_grants_more(held: Scope, asked: Scope) -> None:
    reads_too = asked is Scope.WORKFLOWS_READ and held.startswith("workflows:")

    assert caller(held).may(asked) == (held in (asked, Scope.ADMIN) or reads_too)


@pytest.mark.parametrize("held", [Scope.WORKFLOWS_WRITE, Scope.WORKFLOWS_RUN])
def test_who_may_write_or_run_workflows_may_read_them_and_not_the_other(held: Scope) -> None:
    others = {Scope.WORKFLOWS_WRITE, Scope.WORKFLOWS_RUN} - {held}

    assert caller(held).may(Scope.WORKFLOWS_READ)
    assert not any(caller(held).may(other) for other in others)


def test_a_token_without_scopes_may_nothing() -> None:
    assert not any(caller().may(scope) for scope in Scope)


def test_only_an_admin_of_the_default_tenant_is_the_operator() -> None:
    assert caller(Scope.ADMIN).is_operator
    assert not caller(Scope.ADMIN, tenant_id="acme").is_operator
    assert not caller(Scope.TOKENS_MANAGE, Scope.EVENTS_READ).is_operator
    assert ANYONE.is_operator


def test_a_new_secret_is_recognisable_unguessable_and_never_the_same() -> None:
    secrets = {new_token() for _ in range(1_000)}

    assert len(secrets) == 1_000
    assert all(len(text) == 47 and text.startswith("pst_") for text in secrets)
    assert all(is_secret(text) for text in secrets)


def test_what_is_kept_of_a_secret_does_not_contain_it() -> None:
    assert len(hash_token("pst_secret")) == 32
    assert hash_token("pst_secret") != hash_token("pst_secret ")


@pytest.mark.parametrize("text", ["", "short", "x" * 23, "x" * 513])
def test_text_too_short_or_too_long_is_no_secret(text: str) -> None:
    assert not is_secret(text)


def test_scopes_are_read_each_once_in_order() -> None:
    words = ["events:read", "events:publish", "events:read"]

    assert read_scopes(words) == (Scope.EVENTS_READ, Scope.EVENTS_PUBLISH)


@pytest.mark.parametrize("words", [[], ["events:*"], ["events:read", "root"], ["Admin"]])
def test_unknown_or_missing_scopes_are_refused_by_name(words: list[str]) -> None:
    with pytest.raises(QueryInvalid) as caught:
        read_scopes(words)

    assert caught.value.parameter == "scopes"


def test_nobody_hands_out_a_scope_they_lack() -> None:
    manager = caller(Scope.TOKENS_MANAGE, Scope.EVENTS_READ)

    assert grant_fault(manager, [Scope.EVENTS_READ], "default") is None
    assert "admin" in (grant_fault(manager, [Scope.ADMIN], "default") or "")
    assert "publish" in (grant_fault(manager, [Scope.EVENTS_PUBLISH], "default") or "")


def test_only_the_operator_hands_out_tokens_for_another_tenant() -> None:
    assert grant_fault(caller(Scope.ADMIN), [Scope.ADMIN], "acme") is None
    assert grant_fault(caller(Scope.ADMIN, tenant_id="acme"), [Scope.ADMIN], "acme") is None
    assert grant_fault(caller(Scope.ADMIN, tenant_id="acme"), [Scope.ADMIN], "default")
    assert grant_fault(caller(*set(Scope) - {Scope.ADMIN}), [Scope.EVENTS_READ], "acme")
