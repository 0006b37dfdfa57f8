"""Run the real product in a folder of its own: `penstock up`, its parts, and their pids."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import httpx
import psutil


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Product:
    """One running `penstock up`, or one part of it alone."""

    def __init__(self, folder: Path, *, part: str = "up", **settings: str) -> None:
        self.folder = folder
        self._part = part
        self.port = free_port()
        self.token = secrets.token_urlsafe(32)
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")},
            "PENSTOCK_DATA_DIR": str(folder / "data"),
            "PENSTOCK_PORT": str(self.port),
            "PENSTOCK_ADMIN_TOKEN": self.token,
            "PENSTOCK_DEMO": "0",
            **settings,
        }
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=10
        )
        self._process: subprocess.Popen[str] | None = None
        self._talk: IO[str] | None = None
        self.ready_line = ""

    def start(self, *, within_s: float = 120) -> float:
        """Start it and wait for the ready line; how long that took."""
        began = time.monotonic()
        self._talk = (self.folder / "up.log").open("a")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", self._part],
            env=self.environment, stdout=subprocess.PIPE, stderr=self._talk, text=True,
            cwd=self.folder, start_new_session=True,
        )  # fmt: skip
        heard = threading.Event()

        def listen() -> None:
            assert self._process is not None
            assert self._process.stdout is not None
            for line in self._process.stdout:
                if line.startswith("ready"):
                    self.ready_line = line.rstrip("\n")
                    heard.set()

        threading.Thread(target=listen, daemon=True).start()
        until = began + within_s
        while not (heard.wait(0.1) or (self._part != "up" and self._answers())):
            if self._process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"the product did not start:\n{self.talk()[-4000:]}")
        return time.monotonic() - began

    def _answers(self) -> bool:
        try:
            return self.client.get("/healthz").status_code == 200
        except httpx.HTTPError:
            return False

    def stop(self, *, within_s: float = 30) -> int:
        """Ask it to stop as Ctrl-C does; its exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        code = self._process.wait(within_s)
        self.client.close()
        if self._talk is not None:
            self._talk.close()
        return code

    def end(self) -> None:
        """Leave nothing behind, whatever state it is in."""
        if self._process is None:
            return
        family = [*self.family(), *self.postgres()]
        with contextlib.suppress(subprocess.TimeoutExpired, ProcessLookupError):
            self.stop(within_s=20)
        for process in family:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue

    def talk(self) -> str:
        """What it wrote to stderr, and its parts to their logs."""
        files = [self.folder / "up.log", *(self.folder / "data" / "logs").glob("*.log")]
        return "\n".join(f"== {f.name}\n{f.read_text()[-3000:]}" for f in files if f.exists())

    def family(self) -> list[psutil.Process]:
        """Every process below the supervisor."""
        assert self._process is not None
        try:
            return psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def part(self, name: str) -> psutil.Process | None:
        """The process of one part, while it lives."""
        for process in self.family():
            try:
                words = process.cmdline()
            except psutil.Error:
                continue
            if "penstock.cli" in words and name in words:
                return process
        return None

    def jvm(self) -> psutil.Process | None:
        """The JVM of the ingress, while it lives."""
        driver = self.part("ingress")
        if driver is None:
            return None
        try:
            below = driver.children(recursive=True)
            return next((p for p in below if p.name() == "java"), None)
        except psutil.NoSuchProcess:
            return None

    def postgres(self) -> list[psutil.Process]:
        """The embedded server, while it lives."""
        pidfile = self.folder / "data" / "postgres" / "data" / "postmaster.pid"
        try:
            return [psutil.Process(int(pidfile.read_text().splitlines()[0]))]
        except (OSError, ValueError, IndexError, psutil.NoSuchProcess):
            return []

    def get(self, path: str, **params: Any) -> Any:
        """The `data` of a GET."""
        answer = self.client.get(path, params=params)
        answer.raise_for_status()
        return answer.json()["data"]

    def command(self, *words: str, text: str | None = None) -> str:
        """What a `penstock` command prints, run beside the product as its operator does."""
        done = subprocess.run(
            [sys.executable, "-m", "penstock.cli", *words],
            env=self.environment, input=text, capture_output=True, text=True, check=False,
            cwd=self.folder, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"penstock {' '.join(words)}: {done.stderr}"
        return done.stdout

    def wait(self, claim: Callable[[], object], what: str, *, within_s: float = 60) -> None:
        """Wait until `claim` holds, or fail saying `what` never did."""
        until = time.monotonic() + within_s
        while True:
            try:
                if claim():
                    return
            except (httpx.HTTPError, KeyError):
                pass
            if time.monotonic() > until:
                raise AssertionError(f"never came true: {what}\n{self.talk()[-6000:]}")
            time.sleep(0.05)

    def wait_until_settled(self, *, within_s: float = 90) -> dict[str, Any]:
        """Wait until nothing is in flight and everything is explained; the ledger."""

        def settled() -> bool:
            ledger = self.get("/admin/ledger")
            return bool(ledger["inFlight"] == 0 and ledger["unexplained"] == 0)

        self.wait(settled, "the ledger settles", within_s=within_s)
        ledger: dict[str, Any] = self.get("/admin/ledger")
        return ledger
