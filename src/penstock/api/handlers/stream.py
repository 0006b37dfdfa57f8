"""Open the live stream: `/ws`, and its twin in server-sent events."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from penstock.access.token import ANYONE, Caller
from penstock.api.context import house_of, hub_of
from penstock.api.origin import listed
from penstock.api.sse import serve_events
from penstock.api.websocket import serve_websocket


async def server_sent(request: Request, caller: Caller) -> Response:
    """Follow the log as server-sent events."""
    return await serve_events(request, caller, hub=hub_of(request))


async def websocket(socket: WebSocket) -> None:
    """Follow the log over a WebSocket, which authenticates by itself before it accepts."""
    house = house_of(socket)
    is_open = house.settings.auth == "off"
    if is_open:
        # With authentication off everybody is let in; the WebSocket still asks for a credential.
        socket.scope["headers"] = [*socket.scope["headers"], (b"authorization", b"Bearer off")]
    await serve_websocket(
        socket,
        hub=hub_of(socket),
        authenticate=_anyone if is_open else house.tokens.find,
        redeem=_anyone if is_open else house.tokens.redeem,
        port=(socket.scope.get("server") or ("", 0))[1] or 0,
        hosts=listed(house.settings.hosts_answered),
        origins=listed(house.settings.allowed_origins),
    )


def _anyone(_credential: str) -> Caller | None:
    return ANYONE
