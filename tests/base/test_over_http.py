"""Tasks that ask one server take turns, in the order in which they came, and not for ever."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from penstock.base.over_http import Connections

_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Server:
    """Notes who asks, in their order, and answers while it is told to."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[str] = []
        self.answers = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.asked.append((await reader.readexactly(size)).decode())
                await self.answers.wait()
                writer.write(_ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def serving(timeout_s: float = 20.0) -> AsyncIterator[tuple[Server, Connections]]:
    server = Server()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    connections = Connections(f"http://127.0.0.1:{port}", None, agent="test", timeout_s=timeout_s)
    try:
        yield server, connections
    finally:
        server.answers.set()
        await connections.aclose()
        listener.close()


def test_a_task_that_comes_back_stands_behind_those_who_wait() -> None:
    async def main() -> list[str]:
        async with serving() as (server, connections):
            server.answers.set()

            async def client(name: int) -> None:
                for _ in range(6):
                    assert (await connections.apost("/", str(name).encode())).content == b"ok"

            await asyncio.gather(*(client(name) for name in range(40)))
            return server.asked

    asked = asyncio.run(main())

    seen = Counter(dict.fromkeys(asked, 0))
    assert len(seen) == 40
    for name in asked:
        seen[name] += 1
        assert seen[name] - min(seen.values()) <= 2, "nobody is served three times before another"


def test_whoever_waits_too_long_for_a_turn_is_told() -> None:
    async def main() -> list[BaseException | httpx.Response]:
        async with serving(timeout_s=0.3) as (_, connections):
            tasks = [connections.apost("/", b"x") for _ in range(20)]
            return await asyncio.gather(*tasks, return_exceptions=True)

    told = asyncio.run(main())

    assert {type(each) for each in told} == {httpx.ReadTimeout, httpx.PoolTimeout}


def test_a_task_that_gives_up_leaves_its_turn_to_the_next() -> None:
    async def main() -> int:
        async with serving() as (server, connections):
            gone = [asyncio.create_task(connections.apost("/", b"gone")) for _ in range(20)]
            while len(server.asked) < 8:
                await asyncio.sleep(0)
            for task in gone:
                task.cancel()
            await asyncio.wait(gone)
            server.answers.set()
            return (await connections.apost("/", b"kept")).status_code

    assert asyncio.run(main()) == 200


def test_closed_connections_are_not_used_again() -> None:
    async def main() -> None:
        async with serving() as (_, connections):
            await connections.aclose()
            with pytest.raises(RuntimeError, match="closed"):
                await connections.apost("/", b"x")

    asyncio.run(main())
