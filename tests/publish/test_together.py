"""Calls that wait at the same time share a request, and each gets its own answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from penstock.base.errors import QueueUnavailable
from penstock.envelope.envelope import JsonObject
from penstock.publish.port import Outcome, Result
from penstock.publish.together import EVENTS_MAX, Together


class Server:
    """Answers a request when it is told to; remembers what was in each."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        self._answers: list[asyncio.Future[Callable[[list[Result]], list[Result]]]] = []

    async def send(self, events: Sequence[JsonObject]) -> list[Result]:
        answer = asyncio.get_running_loop().create_future()
        self.requests.append([str(event["id"]) for event in events])
        self._answers.append(answer)
        keep = await answer
        kept: list[Result] = keep([outcome(str(event["id"])) for event in events])
        return kept

    async def answer(self, nth: int, keep: Callable[[Any], Any] = lambda found: found) -> None:
        """Answer the nth request, and let everybody go on as far as they can."""
        self._answers[nth].set_result(keep)
        await settled()

    async def fail(self, nth: int, error: Exception) -> None:
        self._answers[nth].set_exception(error)
        await settled()


def outcome(name: str) -> Outcome:
    return Outcome(name, "accepted", "2026-03-01T10:30:00.000Z", {"id": name})


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def calls(together: Together, *groups: Sequence[str]) -> list[asyncio.Task[list[Result]]]:
    """A caller for each group of events, all at once."""
    found = [
        asyncio.create_task(together.send([{"id": name} for name in group])) for group in groups
    ]
    await settled()
    return found


def ids(task: asyncio.Task[list[Result]]) -> list[str]:
    return [result.id for result in task.result() if isinstance(result, Outcome)]


def play(scene: Callable[[Server, Together], Awaitable[None]]) -> None:
    async def run() -> None:
        server = Server()
        await scene(server, Together(server.send))

    asyncio.run(run())


def test_a_lone_caller_waits_for_nobody() -> None:
    async def scene(server: Server, together: Together) -> None:
        for nth in range(3):
            (task,) = await calls(together, [f"e{nth}"])
            await server.answer(nth)
            assert ids(task) == [f"e{nth}"]
        assert server.requests == [["e0"], ["e1"], ["e2"]]

    play(scene)


def test_those_who_wait_go_together_in_the_order_they_came() -> None:
    async def scene(server: Server, together: Together) -> None:
        tasks = await calls(together, "a", "b", "cd", "e", "f")
        assert server.requests == [["a"], ["b"]]

        await server.answer(0)
        assert server.requests[2:] == [["c", "d", "e", "f"]]
        await server.answer(2)

        assert [ids(task) for task in tasks[2:]] == [["c", "d"], ["e"], ["f"]]
        assert not tasks[1].done()
        await server.answer(1)
        assert ids(tasks[1]) == ["b"]

    play(scene)


def test_when_all_are_answered_the_next_caller_goes_at_once_again() -> None:
    async def scene(server: Server, together: Together) -> None:
        await calls(together, "a", "b", "c")
        for nth in range(3):
            await server.answer(nth)

        await calls(together, "d", "e")

        assert server.requests[3:] == [["d"], ["e"]]

    play(scene)


def test_what_befalls_a_request_is_told_to_all_who_share_it_and_to_nobody_else() -> None:
    async def scene(server: Server, together: Together) -> None:
        tasks = await calls(together, "a", "b", "c", "d")
        await server.answer(0)

        await server.fail(2, QueueUnavailable("away"))

        for task in tasks[2:]:
            assert isinstance(task.exception(), QueueUnavailable)
        (again,) = await calls(together, "e")
        await server.answer(1)
        await server.answer(3)
        assert (ids(tasks[1]), ids(again)) == (["b"], ["e"])

    play(scene)


def test_answers_for_the_first_few_are_theirs_and_the_rest_hears_that_there_are_none() -> None:
    async def scene(server: Server, together: Together) -> None:
        tasks = await calls(together, "a", "b", "c", "de", "f")
        await server.answer(0)

        await server.answer(2, lambda found: found[:2])

        assert [ids(task) for task in tasks[2:4]] == [["c"], ["d"]]
        with pytest.raises(QueueUnavailable, match="went away"):
            tasks[4].result()
        await server.answer(1)

    play(scene)


def test_a_caller_who_gave_up_while_it_waited_is_left_out() -> None:
    async def scene(server: Server, together: Together) -> None:
        tasks = await calls(together, "a", "b", "c", "d")
        tasks[2].cancel()
        await settled()

        await server.answer(0)
        await server.answer(1)
        await server.answer(2)

        assert server.requests[2] == ["d"]
        assert ids(tasks[3]) == ["d"]

    play(scene)


@pytest.mark.parametrize("nth", [0, 2])
def test_a_caller_who_gives_up_on_the_way_harms_nobody(nth: int) -> None:
    async def scene(server: Server, together: Together) -> None:
        tasks = await calls(together, "a", "b", "c", "d")
        if nth == 2:
            await server.answer(0)
        tasks[nth].cancel()
        await settled()
        await server.answer(2)
        await server.answer(1)

        assert ids(tasks[3]) == ["d"]
        assert ids(tasks[1]) == ["b"]

    play(scene)


def test_a_shared_request_stays_small_and_a_large_call_stays_whole() -> None:
    async def scene(server: Server, together: Together) -> None:
        many = [f"m{n}" for n in range(EVENTS_MAX + 1)]
        await calls(together, "a", "b", "c", many, ["x"] * EVENTS_MAX, "y")
        for nth in range(6):
            await server.answer(nth)

        assert [len(request) for request in server.requests] == [
            1, 1, 1, EVENTS_MAX + 1, EVENTS_MAX, 1
        ]  # fmt: skip

    play(scene)


def test_a_loop_that_ends_leaves_nobody_waiting() -> None:
    ended: list[type[BaseException]] = []

    async def scene(server: Server, together: Together) -> None:
        async def caller(name: str) -> None:
            try:
                await together.send([{"id": name}])
            except asyncio.CancelledError as error:
                ended.append(type(error))
                raise

        callers = [asyncio.create_task(caller(name)) for name in "abcd"]
        await settled()
        await server.answer(0)
        assert callers[0].done()

    play(scene)

    assert ended == [asyncio.CancelledError] * 3
