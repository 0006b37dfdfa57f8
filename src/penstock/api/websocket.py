"""Serve the live stream over `/ws`: check everything, accept, then send until it is over.

    Host, Origin ─ token ─ scope ─ filter ──▶ accept ──▶ connection.ack, frames …
         403         401     403     400        (refused as problem+json, before the handshake)

Nothing a client sends is read before it is let in. Whoever is in may say `ping` and change its
filter, in frames of 64 kB, ten a second. A revoked token closes its sockets within seconds (4401).
The server must run with `UVICORN_OPTIONS`: small frames, and no compression for strangers to abuse.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketDisconnected

from penstock.access.token import Caller, Scope
from penstock.api.origin import allowed_host, allowed_origin
from penstock.api.problems import Problem, answer, problem_of
from penstock.api.sight import sees_personal
from penstock.base.errors import AccessDenied, PenstockError
from penstock.stream import frames
from penstock.stream.filter import read_after, read_filter, style_of
from penstock.stream.frames import Form, Frame, Style
from penstock.stream.hub import Hub
from penstock.stream.inbound import INBOUND_BYTES_MAX, Allowance, Ping, read_request
from penstock.stream.session import Write, converse
from penstock.stream.subscription import End, Subscription

Authenticate: TypeAlias = Callable[[str], Caller | None]  # blocking
Redeem: TypeAlias = Callable[[str], Caller | None]  # blocking; a ticket works once

UVICORN_OPTIONS: dict[str, Any] = {
    "ws_max_size": INBOUND_BYTES_MAX,
    "ws_per_message_deflate": False,
    "ws_ping_interval": 20.0,
    "ws_ping_timeout": 20.0,
}
HEARTBEAT_S = 20.0
_CLOSE_WAIT_S = 1.0
_BEARER = "bearer."
_OWN_PARAMETERS = ("after", "ticket", "upcast")
# 4401 and 4403 stand for the statuses of HTTP; the others are those of RFC 6455.
_CLOSE_CODES = {
    End.REVOKED: (4401, "the token was revoked or has expired"),
    End.STOPPING: (1012, "the server restarts; resume after the last position"),
    End.FLOODING: (1008, "too many messages; at most ten a second"),
    End.TOO_BIG: (1009, "expected a frame of at most 64 kB"),
    End.NOT_TEXT: (1003, "expected a text frame"),
}


async def serve_websocket(
    websocket: WebSocket, *, hub: Hub, authenticate: Authenticate, redeem: Redeem, port: int,
    hosts: Collection[str] = (), origins: Collection[str] = (), heartbeat_s: float = HEARTBEAT_S,
) -> None:  # fmt: skip
    """Let the client in or refuse it, and stream to it until one of the two has enough."""
    problem = _stranger(websocket, hosts, origins, port)
    if problem is not None:
        await _refuse(websocket, problem)
        return
    try:
        caller = await _identify(websocket, authenticate, redeem)
        subscription = await _subscribe(websocket, caller, hub)
    except PenstockError as error:
        await _refuse(websocket, problem_of(error))
        return
    try:
        await websocket.accept(subprotocol=_chosen(websocket))
        listening = _listen(websocket, subscription, hub, caller.tenant_id)
        end = await converse(
            subscription, _writer(websocket), listening, heartbeat_s=heartbeat_s, now=hub.now
        )
        await _close(websocket, end)
    except (WebSocketDisconnect, WebSocketDisconnected):
        return
    finally:
        hub.unsubscribe(subscription)


def _stranger(
    websocket: WebSocket, hosts: Collection[str], origins: Collection[str], port: int
) -> Problem | None:
    """What is wrong with where the request comes from, if anything."""
    named, sent = websocket.headers.getlist("host"), websocket.headers.getlist("origin")
    host = named[0] if len(named) == 1 else None
    if not allowed_host(host, hosts, port):
        return Problem(
            403, "host_refused", f"expected a Host of this server, found {str(host)[:80]!r}",
            "Use the address the server printed, or list the name in PENSTOCK_ALLOWED_HOSTS.",
        )  # fmt: skip
    if len(sent) > 1 or not all(allowed_origin(o, host, origins, port) for o in sent):
        return Problem(
            403, "origin_refused", f"expected an Origin of our own, found {sent[0][:80]!r}",
            "Open the page from this server, or list its origin in PENSTOCK_ALLOWED_ORIGINS.",
        )  # fmt: skip
    return None


async def _identify(websocket: WebSocket, authenticate: Authenticate, redeem: Redeem) -> Caller:
    """Who asks. The first credential present decides; a wrong one is not made up for by another."""
    scheme, _, secret = websocket.headers.get("authorization", "").partition(" ")
    offered = [word for word in websocket.scope["subprotocols"] if word.startswith(_BEARER)]
    ticket = websocket.query_params.get("ticket")
    caller = None
    if scheme.lower() == "bearer" and secret.strip():
        caller = await asyncio.to_thread(authenticate, secret.strip())
    elif offered:
        caller = await asyncio.to_thread(authenticate, offered[0].removeprefix(_BEARER))
    elif ticket:
        caller = await asyncio.to_thread(redeem, ticket)
    if caller is None:
        raise AccessDenied(
            "expected a token that is known, unexpired and not revoked",
            remedy="Send `Authorization: Bearer <token>`, the subprotocol `bearer.<token>`, or "
            "`?ticket=` from POST /v1/ws-tickets.",
        )
    if not caller.may(Scope.EVENTS_READ):
        raise AccessDenied(
            f"expected a token with the scope {Scope.EVENTS_READ}, found one without it", known=True
        )
    return caller


async def _subscribe(websocket: WebSocket, caller: Caller, hub: Hub) -> Subscription:
    given = websocket.query_params.multi_items()
    pairs = [(name, value) for name, value in given if name not in _OWN_PARAMETERS]
    query = read_filter(pairs, caller.tenant_id)
    after = read_after(websocket.query_params.get("after"))
    await hub.admit(caller.token_id, after)
    form = Form(_style(websocket), is_open=sees_personal(caller))
    return hub.subscribe(query, after=after, form=form, token_id=caller.token_id)


def _style(websocket: WebSocket) -> Style:
    offered = [word for word in websocket.scope["subprotocols"] if word in set(Style)]
    asked = style_of(websocket.query_params.get("upcast"))
    return Style(offered[0]) if offered and offered[0] != Style.NATIVE else asked


def _chosen(websocket: WebSocket) -> str | None:
    """The subprotocol to answer with.

    One of our own when offered, so that the token is not sent back. A browser that offered nothing
    but `bearer.<token>` drops the connection unless it hears just that; it sent it itself.
    """
    offered: list[str] = websocket.scope["subprotocols"]
    ours = [word for word in offered if word in set(Style)]
    return next(iter(ours or [word for word in offered if word.startswith(_BEARER)]), None)


def _writer(websocket: WebSocket) -> Write:
    async def write(frame: Frame) -> None:
        await websocket.send({"type": "websocket.send", "text": frame.body.decode()})

    return write


async def _listen(
    websocket: WebSocket, subscription: Subscription, hub: Hub, tenant_id: str
) -> None:
    """Answer what the client says; returns when it leaves."""
    allowance = Allowance()
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return
        text = message.get("text")
        end = _overstep(text, allowance)
        if end is not None or text is None:
            subscription.end(end or End.NOT_TEXT)
            continue
        try:
            request = read_request(text)
            if isinstance(request, Ping):
                subscription.say(frames.pong(subscription.form, hub.now()))
            else:
                subscription.refilter(read_filter(request.pairs, tenant_id))
        except PenstockError as error:
            subscription.say(frames.error(subscription.form, hub.now(), error))


def _overstep(text: str | None, allowance: Allowance) -> End | None:
    """Which limit this message breaks, if any."""
    if not allowance.spend(time.monotonic()):
        return End.FLOODING
    if text is not None and len(text.encode()) > INBOUND_BYTES_MAX:
        return End.TOO_BIG
    return None


async def _refuse(websocket: WebSocket, problem: Problem) -> None:
    """Answer the handshake with a problem; a server that cannot do that closes instead."""
    if "websocket.http.response" in websocket.scope.get("extensions", {}):
        response: Response = answer(problem)
        await websocket.send_denial_response(response)
        return
    await websocket.close(code=4401 if problem.status == 401 else 4403, reason=problem.code)


async def _close(websocket: WebSocket, end: End) -> None:
    """Say goodbye, but do not wait for a client that does not read."""
    if end is End.GONE:
        return
    code, reason = _CLOSE_CODES[end]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_WAIT_S):
            await websocket.close(code, reason)
