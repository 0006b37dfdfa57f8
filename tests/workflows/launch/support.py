"""Lend what the tests of executors share: a call, services, a receiver that does as it is told."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

from penstock.envelope.context import WorkflowContext
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.launch.circuit import Circuits
from penstock.workflows.launch.guard import Address, Guard
from penstock.workflows.launch.over_http import Outbound
from penstock.workflows.port import Service, StepCall


def context(run: str = "run-1", step: str = "step-1", slug: str = "test") -> WorkflowContext:
    return WorkflowContext(
        workflow_definition_id="wf-1",
        workflow_run_id=run,
        workflow_run_step_id=f"{run}-{step}",
        job_run_id=f"{run}-{step}-job",
        job_slug=slug,
    )


def call(
    slug: str, said: JsonObject | None = None, *, run: str = "run-1", **changed: Any
) -> StepCall:
    fields: dict[str, Any] = {
        "run_step_id": f"{run}-step-1",
        "job_run_id": f"{run}-job",
        "attempt": 1,
        "kind": "function",
        "slug": slug,
        "input": said or {},
        "context": context(run, slug=slug),
        "timeout_s": 10.0,
        "idempotency_key": f"{run}-step-1",
    }
    return StepCall(**{**fields, **changed})


def wait_until(claim: Callable[[], object], within_s: float = 10.0) -> None:
    deadline = time.monotonic() + within_s
    while not claim():
        assert time.monotonic() < deadline, "it did not come true in time"
        threading.Event().wait(0.005)


@dataclass(frozen=True, slots=True)
class Heard:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    server_name: str | None = None


Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Receiver:
    """A real server that notes every request and answers the next planned answer."""

    server: ThreadingHTTPServer
    heard: list[Heard] = field(default_factory=list)
    connections: int = 0
    answer: Callable[[Heard], Answer | None] = lambda _heard: (200, {}, b"{}")
    server_names: list[str | None] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://{self.server.server_address[0]}:{self.port}"

    def says(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.answer = lambda _heard: (status, headers, body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    receiver: Receiver

    def get_request(self) -> tuple[Any, Any]:
        found = super().get_request()
        self.receiver.connections += 1
        return found

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def _hear(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        heard = Heard(self.command, self.path, headers, self.rfile.read(length))
        self.server.receiver.heard.append(heard)
        answer = self.server.receiver.answer(heard)
        if answer is None:  # hang up hard: the sender sees a reset
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        status, said, body = answer
        self.send_response(status)
        for name, value in said.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _hear  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def receiver(
    host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> Iterator[Receiver]:
    server = _Server((host, port), _Handler)
    made = server.receiver = Receiver(server)
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: made.server_names.append(name)
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Names:
    """A name server in the test's hand: each asking takes the next answer, the last one stays."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, host: str, _port: int) -> list[Address]:
        self.asked.append(host)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [ip_address(each) for each in answer]


def outbound(*cidrs: str, names: Names | None = None, **said: Any) -> Outbound:
    guard = Guard.of(cidrs, blocked_ports=said.pop("blocked_ports", ()))
    circuits = said.pop("circuits", None) or Circuits(failures_max=1_000)
    return Outbound(guard, resolve=names, circuits=circuits, **said)


class Book:
    """Services in a dictionary."""

    def __init__(self, *services: Service) -> None:
        self._services = {(each.tenant_id, each.slug): each for each in services}

    def service(self, tenant_id: str, slug: str) -> Service | None:
        return self._services.get((tenant_id, slug))


def service(slug: str, base_url: str, **said: JsonValue | JsonObject) -> Service:
    return Service("default", slug, base_url, **said)  # type: ignore[arg-type]
