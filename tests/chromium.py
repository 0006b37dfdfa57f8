"""Drive a real Chromium over its DevTools protocol: open a page, press keys, ask what is shown.

    Browser ── one process ──▶ Tab ── press, click, ask ──▶ answers, in the order asked

Every command is answered when it is done, so nothing here waits for a time.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import ClientConnection, connect

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_LISTENING = "DevTools listening on ws://"
_PATIENCE_S = 120.0
_SWITCHES = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--remote-debugging-port=0",
    "--disable-component-update", "--disable-sync", "--mute-audio", "--window-size=1200,800",
)  # fmt: skip
KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35}


class Tab:
    """One page; what went wrong in it is in `complaints`, what it asked for in `requests`."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        self._loads = 0
        self.complaints: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """One command, and its result."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            heard = self._hear()
            if heard.get("id") == self._number:
                assert "error" not in heard, heard
                return heard["result"]

    def open(self, address: str) -> None:
        """Go to an address; returns when everything has loaded."""
        self._go("about:blank")  # so that another place of the same page is loaded anew, too
        self.complaints, self.requests = [], []
        self._go(address)

    def _go(self, address: str) -> None:
        before = self._loads
        self.call("Page.navigate", url=address)
        while self._loads == before:
            self._hear()

    def ask(self, expression: str) -> Any:
        """What an expression is in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def comes_to(self, expression: str, wanted: Any) -> bool:
        """Whether an expression comes to be this; a click that leads elsewhere takes a moment."""
        until = time.monotonic() + _PATIENCE_S
        while self.ask(expression) != wanted:
            if time.monotonic() > until:
                return False
        return True

    def press(self, key: str, modifiers: int = 0) -> None:
        """Press and release a key."""
        code = {"windowsVirtualKeyCode": KEYS[key]} if key in KEYS else {"text": key}
        for kind in ("keyDown", "keyUp"):
            said = code if kind == "keyDown" or key in KEYS else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=modifiers, **said)

    def click(self, selector: str) -> None:
        """Click into the middle of the first element that a selector finds."""
        x, y = self.ask(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'nearest'}); const b = e.getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2] })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )  # fmt: skip

    def _hear(self) -> Any:
        heard = json.loads(self._socket.recv(timeout=_PATIENCE_S))
        method, params = heard.get("method"), heard.get("params", {})
        if method == "Page.loadEventFired":
            self._loads += 1
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        return heard


@contextmanager
def tab(folder: Path) -> Iterator[Tab]:
    """A page of a browser of its own; skips when the machine has no Chromium."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("no Chromium on this machine: " + ", ".join(_NAMES))
    command = [program, *_SWITCHES, f"--user-data-dir={folder}", "about:blank"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as browser:
        try:
            with connect(_page_of(browser), max_size=None, open_timeout=_PATIENCE_S) as socket:
                yield Tab(socket)
        finally:
            browser.kill()


def _page_of(browser: subprocess.Popen[str]) -> str:
    """The address of the browser's one page, once it says where it listens."""
    assert browser.stderr is not None
    said = []
    for line in browser.stderr:
        said.append(line)
        if _LISTENING in line:
            break
    else:
        pytest.skip(f"Chromium does not start on this machine: {''.join(said[-3:])}")
    host = line.split("ws://")[1].partition("/")[0]
    listed = httpx.get(f"http://{host}/json/list", timeout=_PATIENCE_S, trust_env=False).json()
    return str(next(each["webSocketDebuggerUrl"] for each in listed if each["type"] == "page"))
