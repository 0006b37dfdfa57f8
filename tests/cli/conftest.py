"""Lend the command line a small server that speaks the contract, and a place to run."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import structlog

from penstock.cli import main

TOKEN = "pst_test-token-of-the-command-line"


@dataclass(frozen=True)
class Asked:
    """One request that the server got."""

    method: str
    path: str
    parameters: list[tuple[str, str]]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    """One answer to give; `body` may be bytes for what is not JSON."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class Desk:
    """A server whose answers a test lays out beforehand, one after another per route."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._answers: dict[str, list[Answer]] = {}
        self._lock = threading.Lock()
        self.script: Callable[[Asked], Answer] | None = None

    @staticmethod
    def reply(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
        return Answer(body, status, headers or {})

    def lay(self, route: str, *answers: Answer) -> None:
        """Answer `METHOD /path` so, in turn; the last answer stays."""
        self._answers[route] = list(answers)

    def answer(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
            if self.script is not None:
                return self.script(asked)
            left = self._answers.get(f"{asked.method} {asked.path}")
            if not left:
                return Answer({"code": "not_found", "detail": "no such thing"}, 404)
            return left.pop(0) if len(left) > 1 else left[0]


def _handler(desk: Desk) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            url = urlsplit(self.path)
            length = int(self.headers.get("content-length") or 0)
            found = desk.answer(
                Asked(
                    self.command,
                    url.path,
                    parse_qsl(url.query, keep_blank_values=True),
                    {name.lower(): value for name, value in self.headers.items()},
                    self.rfile.read(length),
                )
            )
            raw = found.body if isinstance(found.body, bytes) else json.dumps(found.body).encode()
            self.send_response(found.status)
            self.send_header("content-length", str(len(raw)))
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815  what http.server calls

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Keep quiet."""

    return Handler


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[Desk]:
    """The server that PENSTOCK_URL names."""
    desk = Desk()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(desk))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setenv("PENSTOCK_URL", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("PENSTOCK_TOKEN", TOKEN)
    yield desk
    server.shutdown()
    server.server_close()


@pytest.fixture
def answers(desk: Desk) -> Callable[..., None]:
    """Lay out what a route answers, one body after another; a pair is a status and a body."""

    def lay(
        route: str, *bodies: Any, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        pairs = [body if isinstance(body, tuple) else (status, body) for body in bodies]
        desk.lay(route, *(Answer(body, code, headers or {}) for code, body in pairs))

    return lay


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder to run in, and no settings but the defaults."""
    for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
        monkeypatch.delenv(name)
    for name in ("APPHUB_EVENTS_MODE", "REDIS_URL", "APPHUB_WORKFLOW_EVENT_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@dataclass(frozen=True)
class Ran:
    """How one command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: Path
) -> Iterator[Run]:
    """Run `penstock` with these words."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def run(*words: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main.run(list(words))
        said = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, said.out, said.err)

    yield run
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    structlog.reset_defaults()
