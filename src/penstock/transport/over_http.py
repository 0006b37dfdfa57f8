"""Send events to a Penstock server: POST {url}/v1/events, over connections that are kept.

`send` blocks, `asend` is awaited; both hold the same conversation (publish/conversation.py). Tasks
that publish at the same time share requests (publish/together.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import httpx

from penstock.base.clock import Clock, SystemClock
from penstock.base.errors import QueueUnavailable
from penstock.base.over_http import Connections, said_by
from penstock.envelope.envelope import JsonObject
from penstock.publish.answer import Answer
from penstock.publish.conversation import Conversation
from penstock.publish.port import Result
from penstock.publish.together import Together


class HttpSink:
    """Sends to one server. Threads and tasks may share it."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout_s: float = 30.0,
        clock: Clock | None = None,
    ) -> None:
        self._connections = Connections(url, token, agent="penstock-publisher", timeout_s=timeout_s)
        self._clock = clock or SystemClock()
        self._together: WeakKeyDictionary[asyncio.AbstractEventLoop, Together]
        self._together = WeakKeyDictionary()

    def send(self, events: Sequence[JsonObject]) -> list[Result]:
        """One answer per event; fewer when the server went away half-way."""
        talk = Conversation(events)
        while (body := talk.body) is not None:
            talk.hear(self._post(body))
        return talk.results

    async def asend(self, events: Sequence[JsonObject]) -> list[Result]:
        """As `send`, awaited."""
        loop = asyncio.get_running_loop()
        together = self._together.get(loop)
        if together is None:
            together = self._together[loop] = Together(self._converse)
        return await together.send(events)

    async def _converse(self, events: Sequence[JsonObject]) -> list[Result]:
        talk = Conversation(events)
        while (body := talk.body) is not None:
            talk.hear(await self._apost(body))
        return talk.results

    def _post(self, body: bytes) -> Answer | QueueUnavailable:
        try:
            return self._heard(self._connections.post("/v1/events", body))
        except httpx.RequestError as error:
            return self._unreachable(error)

    async def _apost(self, body: bytes) -> Answer | QueueUnavailable:
        try:
            return self._heard(await self._connections.apost("/v1/events", body))
        except httpx.RequestError as error:
            return self._unreachable(error)

    def _heard(self, response: httpx.Response) -> Answer:
        return Answer(
            status=response.status_code,
            body=response.content,
            at=self._clock.now(),
            retry_after=response.headers.get("retry-after"),
        )

    def _unreachable(self, error: httpx.RequestError) -> QueueUnavailable:
        address = self._connections.address
        return QueueUnavailable(
            f"expected an answer from {address}, found {said_by(error)}", retry_after_s=0
        )

    def close(self) -> None:
        """Send no more, and close the kept connections of blocking calls."""
        self._connections.close()

    async def aclose(self) -> None:
        """As `close`, and close the kept connections of this event loop."""
        await self._connections.aclose()
