"""While nobody else writes nobody is looked for; whoever writes then is seen all the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest
from tests.store.append.support import (
    cut_connections,
    event,
    insert_by_hand,
    on_postgres,
    unless,
    wait_for_lock,
)

from penstock.base.errors import AppendConflict, EventRefused
from penstock.store.append import on_postgres as module
from penstock.store.append.appends import Appends
from penstock.store.append.on_postgres import PostgresLog

_BEFORE = module._QUIET + 1  # the first one learns where the log ends


@pytest.fixture
def quiet(database: str) -> Iterator[Appends]:
    """Appends, of which so many have been made that the next one is sent on trust."""
    with on_postgres(database) as appends:
        for n in range(_BEFORE):
            appends.of("acme").append([event(f"before-{n}")])
        yield appends


@pytest.fixture
def called(quiet: Appends, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that are called from now on."""
    names: list[str] = []
    assert isinstance(quiet.log, PostgresLog)
    line = quiet.log._open()
    real = line.call

    def call(name: bytes, *given: object) -> object:
        names.append(name.decode())
        return real(name, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(line, "call", call)
    return names


def test_a_lone_caller_is_trusted_after_a_while(quiet: Appends, called: list[str]) -> None:
    store = quiet.of("acme")
    places = [store.append([event(f"e{n}")]).positions for n in range(3)]

    assert places == [(_BEFORE + n,) for n in (1, 2, 3)]
    assert called == ["append_next"] * 3
    assert store.append([event("f"), event("g")]).positions == (_BEFORE + 4, _BEFORE + 5)
    assert store.append([event("h")]).positions == (_BEFORE + 6,)
    assert called[3:] == ["append_quick", "append_next"]


def test_what_another_has_written_is_seen_and_nothing_is_written_over_it(
    quiet: Appends, called: list[str], database: str
) -> None:
    with on_postgres(database) as others:
        others.of("acme").append([event("theirs", tags={"show": "42"})])
        with pytest.raises(AppendConflict) as refused:
            quiet.of("acme").append([event("ours")], unless(show="42"))
        assert refused.value.positions == (_BEFORE + 1,)

        others.of("acme").append([event("more")])
        assert quiet.of("acme").append([event("last")]).positions == (_BEFORE + 3,)

    assert called == ["append_next", "append_batch", "append_one"]


def test_after_another_has_written_nobody_is_locked_out_for_it(
    quiet: Appends, called: list[str], database: str
) -> None:
    with on_postgres(database) as others:
        others.of("acme").append([event("theirs")])
    for n in range(_BEFORE + 2):
        quiet.of("acme").append([event(f"ours-{n}")])

    learning = ["append_one"] * _BEFORE
    assert called == ["append_next", "append_batch", *learning, "append_next"]


def test_a_refusal_does_not_end_the_quiet(quiet: Appends, called: list[str]) -> None:
    store = quiet.of("acme")
    first = store.append([event("a", tags={"show": "42"})], unless(show="42"))
    with pytest.raises(AppendConflict):
        store.append([event("b")], unless(show="42"))
    with pytest.raises(EventRefused):
        store.append([event("a", payload={"seat": "another"})])
    assert store.append([event("a", tags={"show": "42"})], unless(show="42")) == first
    assert store.append([event("c")]).positions == (_BEFORE + 2,)

    refused = ["append_next", "append_batch"] * 3
    assert called == ["append_next", *refused, "append_next"]


def test_a_writer_who_commits_in_the_same_moment_comes_first(
    quiet: Appends, called: list[str], database: str
) -> None:
    """It holds the head while ours waits for it, believing to know where the log ends."""
    found: list[tuple[int, ...]] = []
    with psycopg.connect(database) as other:
        other.execute("SELECT FROM head FOR UPDATE")

        def late() -> None:
            found.append(quiet.of("acme").append([event("ours")], unless(show="1")).positions)

        waiting = threading.Thread(target=late)
        waiting.start()
        wait_for_lock(database)
        insert_by_hand(other, position=_BEFORE + 1, tag="show:2")
        other.commit()
        waiting.join(20)

    assert found == [(_BEFORE + 2,)]
    assert called == ["append_next", "append_batch"]


@pytest.mark.parametrize("is_quiet", [True, False])
def test_a_connection_that_breaks_in_the_quiet_is_opened_again(
    quiet: Appends, database: str, is_quiet: bool
) -> None:
    cut_connections(database)
    if not is_quiet:
        with on_postgres(database) as others:
            others.of("acme").append([event("theirs")])

    place = _BEFORE + 1 + (not is_quiet)
    assert quiet.of("acme").append([event("b")], unless(show="42")).positions == (place,)
    assert quiet.of("acme").append([event("b"), event("c")]).positions == (place, place + 1)
