"""Tokens are hashed at rest, bound to a tenant, revocable at once, and fail closed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from penstock.access.on_postgres import TokenStore
from penstock.access.token import ANYONE, Scope
from penstock.base.clock import FixedClock
from penstock.base.errors import NotFound, QueryInvalid, StoreUnavailable
from penstock.base.on_postgres import Pool, open_pool


class Ticks:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def pool(database: str) -> Iterator[Pool]:
    with open_pool(database, "owner", size_max=4) as opened:
        yield opened


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def store(pool: Pool, ticks: Ticks) -> TokenStore:
    return TokenStore(pool, ticks=ticks)


def made(store: TokenStore, *scopes: Scope, tenant_id: str = "default") -> tuple[str, str]:
    info, secret = store.create("ci", tenant_id, scopes or (Scope.EVENTS_READ,), by="test")
    return info.id, secret


def away(pool: Pool) -> None:
    """Take the database away from the store."""
    pool.close()


def test_a_created_token_is_found_with_its_tenant_and_scopes(store: TokenStore) -> None:
    token_id, secret = made(store, Scope.EVENTS_PUBLISH, Scope.EVENTS_READ, tenant_id="acme")

    found = store.find(secret)

    assert found is not None
    assert (found.token_id, found.name, found.tenant_id) == (token_id, "ci", "acme")
    assert found.scopes == {Scope.EVENTS_PUBLISH, Scope.EVENTS_READ}


def test_the_database_never_holds_the_secret(store: TokenStore, database: str) -> None:
    _, secret = made(store)

    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT t::text FROM access_tokens t").fetchall()

    assert rows
    assert secret not in str(rows)
    assert secret[4:] not in str(rows)


@pytest.mark.parametrize("secret", ["", "x", "pst_" + "A" * 43, "x" * 5_000, "\udce9" * 30])
def test_an_unknown_secret_is_nobody(store: TokenStore, secret: str) -> None:
    assert store.find(secret) is None
    assert store.cached(secret) is None


def test_a_secret_that_an_operator_brings_is_the_same_token_after_every_start(
    store: TokenStore,
) -> None:
    secret = "an-admin-token-of-24-chars"
    first, _ = store.create("admin", "default", (Scope.ADMIN,), by="system", secret=secret)
    store.revoke(first.id)

    second, same = store.create("admin", "default", (Scope.ADMIN,), by="system", secret=secret)

    assert (second.id, same) == (first.id, secret)
    assert store.find(secret) is not None
    assert len(store.list()) == 1


def test_a_secret_shorter_than_24_characters_is_refused(store: TokenStore) -> None:
    with pytest.raises(QueryInvalid, match="24"):
        store.create("admin", "default", (Scope.ADMIN,), by="system", secret="x" * 23)


def test_a_revoked_token_is_nobody_at_once_in_the_process_that_revoked_it(
    store: TokenStore,
) -> None:
    token_id, secret = made(store)
    assert store.find(secret)

    assert store.revoke(token_id)

    assert store.cached(secret) is None
    assert store.find(secret) is None
    assert not store.is_alive(token_id)


def test_a_token_revoked_elsewhere_is_nobody_within_five_seconds(
    store: TokenStore, pool: Pool, ticks: Ticks
) -> None:
    token_id, secret = made(store)
    assert store.find(secret)
    TokenStore(pool).revoke(token_id)

    ticks.now += 2

    assert store.cached(secret) is None
    assert store.find(secret) is None


def test_a_known_caller_is_not_asked_about_again_for_a_moment(
    store: TokenStore, pool: Pool, ticks: Ticks
) -> None:
    _, secret = made(store)
    assert store.cached(secret) is None
    found = store.find(secret)
    away(pool)

    ticks.now += 1.9

    assert store.cached(secret) == found
    assert store.find(secret) == found


def test_revoking_twice_says_so_and_harms_nothing(store: TokenStore) -> None:
    token_id, _ = made(store)

    assert store.revoke(token_id)
    assert not store.revoke(token_id)
    assert not store.revoke("no-such-token")


def test_an_admin_of_one_tenant_neither_lists_nor_revokes_the_tokens_of_another(
    store: TokenStore,
) -> None:
    token_id, secret = made(store, tenant_id="acme")

    assert store.list("other") == []
    assert not store.revoke(token_id, tenant_id="other")
    assert store.find(secret) is not None
    assert [info.id for info in store.list("acme")] == [token_id]


def test_an_expired_token_is_nobody(store: TokenStore) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    _, secret = store.create("old", "default", (Scope.ADMIN,), by="test", expires_at=past)

    assert store.find(secret) is None


def test_a_token_that_expires_while_it_is_known_is_nobody(pool: Pool) -> None:
    now = datetime.now(UTC)
    clock = FixedClock(now)
    store = TokenStore(pool, clock=clock)
    expires_at = now + timedelta(hours=1)
    _, secret = store.create("soon", "default", (Scope.ADMIN,), by="test", expires_at=expires_at)
    assert store.find(secret)

    clock.move(timedelta(hours=1))

    assert store.cached(secret) is None
    assert store.find(secret) is None


def test_using_a_token_leaves_a_trace_of_when(store: TokenStore) -> None:
    _, secret = made(store)
    assert store.list()[0].last_used_at is None

    store.find(secret)

    assert store.list()[0].last_used_at is not None


def test_known_callers_go_on_while_the_database_is_away(
    store: TokenStore, pool: Pool, ticks: Ticks
) -> None:
    _, secret = made(store)
    found = store.find(secret)
    away(pool)

    for _ in range(5):
        ticks.now += 3_600
        assert store.find(secret) == found


def test_whoever_is_not_known_is_refused_while_the_database_is_away(
    store: TokenStore, pool: Pool, ticks: Ticks
) -> None:
    _, secret = made(store)
    away(pool)

    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            store.find(secret)
        ticks.now += 1


def test_a_scope_this_version_does_not_know_grants_nothing(
    store: TokenStore, database: str
) -> None:
    _, secret = made(store)
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE access_tokens SET scopes = '{root,events:read}'")

    found = store.find(secret)

    assert found is not None
    assert found.scopes == {Scope.EVENTS_READ}


def test_a_ticket_opens_one_door_once(store: TokenStore) -> None:
    token_id, secret = made(store, tenant_id="acme")
    ticket = store.ticket(token_id)

    first, second = store.redeem(ticket), store.redeem(ticket)

    assert first == store.find(secret)
    assert second is None


def test_of_many_who_present_a_ticket_at_once_one_gets_in(store: TokenStore) -> None:
    token_id, _ = made(store)
    ticket = store.ticket(token_id)

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(store.redeem, [ticket] * 8))

    assert sum(caller is not None for caller in found) == 1


def test_a_ticket_older_than_30_seconds_opens_nothing(store: TokenStore, database: str) -> None:
    token_id, _ = made(store)
    ticket = store.ticket(token_id)
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE ws_tickets SET expires_at = expires_at - interval '31 s'")

    assert store.redeem(ticket) is None


def test_a_ticket_of_a_token_revoked_since_opens_nothing(store: TokenStore) -> None:
    token_id, _ = made(store)
    ticket = store.ticket(token_id)
    store.revoke(token_id)

    assert store.redeem(ticket) is None


def test_a_ticket_is_no_token_and_a_token_is_no_ticket(store: TokenStore) -> None:
    token_id, secret = made(store)

    assert store.find(store.ticket(token_id)) is None
    assert store.redeem(secret) is None


def test_tickets_nobody_used_are_swept(store: TokenStore, database: str) -> None:
    token_id, _ = made(store)
    store.ticket(token_id)
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE ws_tickets SET expires_at = now() - interval '1 h'")

    kept = store.ticket(token_id)

    store.forget_tickets()

    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM ws_tickets").fetchone() == (1,)
    assert store.redeem(kept) is not None


def test_there_is_no_ticket_for_an_unknown_token(store: TokenStore) -> None:
    with pytest.raises(NotFound):
        store.ticket("no-such-token")


def test_anyone_stays_alive_while_authentication_is_off(store: TokenStore) -> None:
    assert store.is_alive(ANYONE.token_id)
