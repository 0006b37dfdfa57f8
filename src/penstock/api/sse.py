"""Serve the live stream as server-sent events: `GET /v1/events/stream`, the twin of `/ws`.

    id: 4711
    event: workflow.event.received
    data: {"type": "workflow.event.received", "data": {"event": {…}}, "emittedAt": …}

`id` is the position, so a browser that reconnects sends it back as Last-Event-ID and misses
nothing. The typed frame of an event has no id: the event is not complete until the general one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.access.token import Caller
from penstock.api.sight import sees_personal
from penstock.base.errors import AccessDenied
from penstock.stream import frames
from penstock.stream.filter import read_after, read_filter, style_of
from penstock.stream.frames import Form, Frame
from penstock.stream.hub import Hub
from penstock.stream.session import converse
from penstock.stream.subscription import End, Subscription

HEARTBEAT_S = 15.0
PATH = "/v1/events/stream"
_RETRY = b"retry: 2000\n\n"
_CLOSE_WAIT_S = 1.0


async def serve_events(
    request: Request, caller: Caller, *, hub: Hub, heartbeat_s: float = HEARTBEAT_S
) -> Response:
    """The stream of one caller; QueryInvalid or StoreUnavailable before anything is sent."""
    given = request.query_params.multi_items()
    own = ("after", "upcast")
    query = read_filter([pair for pair in given if pair[0] not in own], caller.tenant_id)
    form = Form(style_of(request.query_params.get("upcast")), is_open=sees_personal(caller))
    # A browser repeats the URL it was given when it reconnects; the header is the newer of the two.
    after = read_after(request.headers.get("last-event-id") or request.query_params.get("after"))
    await hub.admit(caller.token_id, after)
    subscribe = partial(
        hub.subscribe, query, after=after, form=form, token_id=caller.token_id, path=PATH
    )
    return EventStream(hub, subscribe, heartbeat_s)


class EventStream(Response):
    """A response that goes on until the client leaves or the subscription ends."""

    media_type = "text/event-stream"

    def __init__(self, hub: Hub, subscribe: Callable[[], Subscription], heartbeat_s: float) -> None:
        self.status_code = 200
        self.background = None
        self.body = b""
        self._hub = hub
        self._subscribe = subscribe
        self._heartbeat_s = heartbeat_s
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        subscription = self._subscribe()

        async def write(frame: Frame) -> None:
            await send(_body(write_event(frame)))

        try:
            headers = self.raw_headers
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send(_body(_RETRY))
            end = await converse(
                subscription, write, _gone(receive),
                heartbeat_s=self._heartbeat_s, now=self._hub.now,
            )  # fmt: skip
            await self._finish(end, send)
        except OSError:
            return
        finally:
            self._hub.unsubscribe(subscription)

    async def _finish(self, end: End, send: Send) -> None:
        """End the response, but do not wait for a client that does not read."""
        if end is End.GONE:
            return
        last = b""
        if end is End.REVOKED:
            denied = AccessDenied("the token was revoked or has expired")
            last = write_event(frames.error(Form.NATIVE, self._hub.now(), denied))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_WAIT_S):
                await send(_body(last, more=False))


def write_event(frame: Frame) -> bytes:
    """One frame as a server-sent event. Our JSON has no line breaks, so it is one `data` line."""
    place = b"" if frame.position is None else b"id: %d\n" % frame.position
    if frame.type == frames.HEARTBEAT:
        # No data, so nothing is dispatched; the id still moves what the client resumes from.
        return b": heartbeat\n" + place + b"\n"
    return place + b"event: " + frame.type.encode() + b"\ndata: " + frame.body + b"\n\n"


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _body(content: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": content, "more_body": more}
