"""Run the part that answers HTTP and WebSocket."""

from __future__ import annotations

import gc
import os
import signal
import socket
from types import FrameType

from penstock.base.errors import SetupIncomplete
from penstock.base.settings import Settings
from penstock.cli import report
from penstock.cli.connect import token_file, with_admin_token
from penstock.cli.options import ParentPid
from penstock.cli.part import begin, reaching_the_store

_BACKLOG = 2048
_DRAIN_S = 3  # a request under way may finish; a stream that never ends may not hold us up


def serve(parent_pid: ParentPid = None) -> None:
    """Answer HTTP and WebSocket until stopped."""
    settings = with_admin_token(begin("serve", parent_pid))
    # The server sends itself the signal again once it has drained; the house is closed after that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _note)
    with listen(settings) as listener, reaching_the_store():
        if parent_pid is None:
            host, port = listener.getsockname()[:2]
            report.say(f"listening on {host} port {port}; {_where_the_token_is(settings)}")
        _answer(settings, listener)


def _answer(settings: Settings, listener: socket.socket) -> None:
    import uvicorn

    from penstock.api.app import build_app
    from penstock.api.websocket import UVICORN_OPTIONS
    from penstock.house import open_house

    class Server(uvicorn.Server):
        """Ends live streams first: one that never ends must not hold up the requests that do."""

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.hub.end_all()
            await super().shutdown(sockets)

    house = open_house(settings)
    if settings.events_mode == "inline":
        house.act_here()
    app = build_app(house)
    # Events come and go by the thousand and hold no cycles: the collector need not look so often,
    # nor ever again at what was loaded to start.
    gc.freeze()
    gc.set_threshold(200_000, 50, 50)
    try:
        config = uvicorn.Config(
            app,
            loop="uvloop",
            http="httptools",
            ws="websockets",
            **UVICORN_OPTIONS,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_DRAIN_S,
        )
        Server(config).run(sockets=[listener])
    finally:
        house.close()


def listen(settings: Settings) -> socket.socket:
    """A listening socket at the address of these settings; SetupIncomplete when it is taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise SetupIncomplete(
            f"expected to listen on {settings.host} port {settings.port}, found {_why(error)}",
            remedy=f"Stop what listens there, or choose another port: "
            f"PENSTOCK_PORT={settings.port + 1 if settings.port < 65535 else 8701}.",
        ) from None


def _where_the_token_is(settings: Settings) -> str:
    kept = token_file(settings)
    return f"the admin token is in {kept}" if kept.exists() else "the admin token was given"


def _why(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


def _note(_number: int, _frame: FrameType | None) -> None:
    """Go on until the server has drained."""
