"""The README's tour is walked on the real product, and prints what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.tour import Step, steps
from tests.prove.product import Product

pytestmark = pytest.mark.prove
_WITHIN_S = 120
_ASKS = re.compile(
    r"penstock (events|dead-letters groups|ledger|audit|why|trace)|.*/admin/events\?"
)
_GOES_ON = re.compile(r"curl -sSN|python -m websockets|penstock tail")
_TERMINAL = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[78])")


class Walk:
    """A terminal beside the product, in the folder in which it was started."""

    def __init__(self, product: Product) -> None:
        self._folder = product.folder
        self._port = product.port
        self._environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")},
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PENSTOCK_URL": product.url,
            "PENSTOCK_TOKEN": product.token,
        }

    def take(self, step: Step) -> None:
        """Run one command until it has printed what the page shows; fail with what it did."""
        until = time.monotonic() + _WITHIN_S
        goes_on = _GOES_ON.search(step.command) is not None
        while True:
            shell = self._run(step.command)
            printed = _until(shell, step) if goes_on else shell.communicate(timeout=_WITHIN_S)[0]
            if step.is_among(printed) if goes_on else step.is_printed(printed):
                return
            # Only a question may be asked again: what it is about may need a moment.
            if not _ASKS.match(step.command) or time.monotonic() > until:
                raise AssertionError(f"$ {step.command}\n{step.shown}\n--- was:\n{printed}")

    def _run(self, command: str) -> subprocess.Popen[str]:
        command = command.replace("127.0.0.1:8700", f"127.0.0.1:{self._port}")
        # It is started after the events that it would have waited for.
        command = command.replace("penstock tail", "penstock tail --since 5 --count 2")
        remember = "touch .said; . ./.said; {}\ndeclare -p TICKET > .said 2>/dev/null; true"
        return subprocess.Popen(
            ["bash", "-c", remember.format(command)], cwd=self._folder, env=self._environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip


def _until(shell: subprocess.Popen[str], step: Step) -> str:
    """What is printed until everything that the page shows is there; then it is ended."""
    assert shell.stdout is not None
    timer = threading.Timer(_WITHIN_S, os.killpg, (shell.pid, 9))
    timer.start()
    printed = ""
    for line in shell.stdout:
        printed += _TERMINAL.sub("", line)
        if step.is_among(printed):
            break
    timer.cancel()
    if shell.poll() is None:
        os.killpg(shell.pid, 9)
    shell.communicate()
    return printed


@pytest.fixture
def fresh() -> Iterator[Product]:
    """A product whose log is empty, so that positions are those of the page."""
    with tempfile.TemporaryDirectory(prefix="penstock-tour-") as folder:
        started = Product(Path(folder), PENSTOCK_DATA_DIR=f"{folder}/.penstock")
        try:
            started.start()
            yield started
        finally:
            started.end()


@pytest.mark.timeout(900)
def test_the_tour_prints_what_the_page_shows(fresh: Product) -> None:
    walk = Walk(fresh)
    *before, ledger = steps()

    for step in before:
        walk.take(step)
        fresh.wait_until_settled(
            within_s=180
        )  # a reader is slower than we are, and sees positions in order

    # With the ingress killed the page counts three events in flight. It may be back by now.
    assert ledger.command == "penstock ledger | head -6"
    assert fresh.wait_until_settled()["stored"] == int(_figure(ledger, "stored")) + 3


def _figure(step: Step, name: str) -> str:
    found = re.search(rf"^{name} +(\d+)$", step.shown, re.MULTILINE)
    assert found is not None
    return found.group(1)
