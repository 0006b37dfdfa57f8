"""Run every example as a reader would, against a real HTTP server that keeps the contract.

The server judges with the real pipeline and the real vocabularies, so an example whose event the
product would refuse fails here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest

from penstock.base.clock import format_instant
from penstock.base.ids import is_uuid7, uuid7
from penstock.catalog.vocabularies import ALL
from penstock.envelope.check import write
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Accepted, Arrival, Via
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.registry import Registry

EXAMPLES = Path(__file__).parents[2] / "examples"
TOKEN = "pst_example"


class Server(ThreadingHTTPServer):
    """POST /v1/events and nothing else, kept in memory."""

    daemon_threads = True

    def __init__(self, registry: Registry) -> None:
        super().__init__(("127.0.0.1", 0), Door)
        self.registry = registry
        self.contents: dict[str, bytes] = {}
        self.events: list[dict[str, Any]] = []
        self.requests = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def take(self, event: object) -> dict[str, Any]:
        """One result, as it stands in a batch, with what a single answer says beside it."""
        now = datetime.now(UTC)
        verdict = judge(orjson.dumps(event), Arrival(now, uuid7(), Via.HTTP), self.registry)
        if not isinstance(verdict, Accepted):
            errors = [{"pointer": f.pointer, "detail": f.detail} for f in verdict.faults]
            problem = {"code": verdict.reason, "detail": verdict.detail, "errors": errors}
            return {"status": "rejected", "id": verdict.event_id, "problem": problem}
        known = self.contents.setdefault(verdict.envelope.id, verdict.content_hash)
        assert known == verdict.content_hash, "an example published other content under one id"
        wire = write(verdict.envelope)
        is_repeat = any(kept["id"] == wire["id"] for kept in self.events)
        if not is_repeat:
            self.events.append(wire)
        status = "duplicate" if is_repeat else "accepted"
        return {"status": status, "id": wire["id"], "at": format_instant(now), "event": wire}


class Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = orjson.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests += 1
        if self.path != "/v1/events":
            self.answer(404, {"code": "not_found", "detail": self.path})
        elif self.headers["authorization"] != f"Bearer {TOKEN}":
            self.answer(401, {"code": "access_denied", "detail": "expected a token"})
        elif isinstance(body, list):
            self.answer_many([self.server.take(event) for event in body])
        else:
            self.answer_one(self.server.take(body))

    def answer_one(self, taken: dict[str, Any]) -> None:
        if taken["status"] == "rejected":
            self.answer(422, taken["problem"])
        else:
            data = {"status": taken["status"], "acceptedAt": taken["at"], "event": taken["event"]}
            self.answer(202, {"data": data})

    def answer_many(self, taken: list[dict[str, Any]]) -> None:
        results = [
            {"index": index, **{k: each[k] for k in ("id", "status", "problem") if k in each}}
            for index, each in enumerate(taken)
        ]
        all_good = all(each["status"] != "rejected" for each in taken)
        self.answer(202 if all_good else 207, {"data": {"results": results}})

    def answer(self, status: int, tree: object) -> None:
        content = orjson.dumps(tree)
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture(scope="module")
def registry() -> Registry:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    return book.current()


@pytest.fixture
def server(registry: Registry) -> Iterator[Server]:
    server = Server(registry)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def run(name: str, *arguments: str, url: str = "", token: str = TOKEN) -> tuple[int, list[str]]:
    """Run an example in a fresh interpreter: its exit code and its lines, stderr included."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PENSTOCK_", "APPHUB_"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        env={**kept, "PENSTOCK_URL": url, "PENSTOCK_TOKEN": token},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_publish_one(server: Server) -> None:
    code, (line,) = run("publish_one.py", url=server.url)

    status, event_id = line.split()
    assert (code, status) == (0, "accepted")
    assert is_uuid7(event_id)
    assert [event["id"] for event in server.events] == [event_id]
    assert server.events[0]["correlationId"] == "req-41ac2fd3"


def test_publish_one_with_a_wrong_token_says_so(server: Server) -> None:
    code, lines = run("publish_one.py", url=server.url, token="pst_wrong")

    assert code == 1
    assert lines[0] == "error  access_denied: expected a token"
    assert lines[1].startswith("  fix  Send `Authorization: Bearer <token>`")


def test_publish_many(server: Server) -> None:
    first = run("publish_many.py", "1100", url=server.url)
    again = run("publish_many.py", "1100", url=server.url)

    refused = "event 1 refused  payload_invalid at /payload/datasetId, /payload/rowCount"
    assert first[0] == again[0] == 0
    assert [sorted(first[1][0].split()), first[1][1]] == [
        sorted(refused.split()),
        "accepted 1100  refused 1",
    ]
    assert again[1][1] == "duplicate 1100  refused 1"
    assert server.requests == 4
    assert len(server.events) == 1100


def test_in_process_bus() -> None:
    code, lines = run("in_process_bus.py")

    assert code == 0
    assert lines == [
        "watched  metadata.profile.due from metadata-studio.api, caused by -",
        "watched  metadata.profile.completed from metadata-studio.api, caused by due-1",
        "failed   metadata.profile.due: this handler always fails",
        "failed   metadata.profile.completed: this handler always fails",
        "once     metadata.profile.due",
        "errors   2",
    ]


def test_workflow_context() -> None:
    code, lines = run("workflow_context.py")

    assert code == 0
    assert [line.split() for line in lines] == [
        ["example.before", "asset.produced", "from", "run", "None"],
        ["example.here", "asset.produced", "from", "run", "run-42"],
        ["example.thread", "asset.produced", "from", "run", "run-42"],
        ["example.child", "asset.produced", "from", "run", "run-42"],
        ["example.after", "asset.produced", "from", "run", "None"],
    ]


def test_job_handlers() -> None:
    code, lines = run("job_handlers.py")

    assert code == 0
    assert [line.split()[:2] for line in lines] == [
        ["count-words", "succeeded"],
        ["count-words", "input_invalid"],
        ["always-fails", "handler_error"],
        ["never-returns", "timed_out"],
        ["nobody", "handler_unknown"],
    ]


def test_webhook_receiver() -> None:
    code, lines = run("webhook_receiver.py")

    assert code == 0
    assert lines == [
        'taken     run-42-step-3 {"rows":24}',
        'repeated  run-42-step-3 {"rows":24}',
        "refused   expected a signature by a known secret, found none",
    ]


def test_every_example_is_tested_here() -> None:
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}

    assert {path.stem for path in EXAMPLES.glob("*.py")} <= tested
