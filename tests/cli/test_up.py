"""Hold `penstock up` to its contract: one line when ready, parts that come back, a clean stop."""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import httpx
import psutil
import pytest

from penstock.base.errors import SetupIncomplete
from penstock.base.settings import Settings, load_settings
from penstock.cli.commands.serve import listen
from penstock.cli.commands.up import (
    Keeper,
    child_environ,
    local_url,
    parts_of,
    resolved,
)
from penstock.cli.connect import token_of, with_admin_token
from penstock.cli.probe import is_whole

TOKEN = "a-token-of-at-least-24-characters"


@pytest.mark.parametrize(
    ("environ", "parts"),
    [
        ({}, ("demo", "serve", "ingress", "worker")),
        ({"PENSTOCK_DEMO": "0"}, ("serve", "ingress", "worker")),
        ({"PENSTOCK_EVENTS_MODE": "inline"}, ("demo", "serve", "worker")),
        ({"APPHUB_EVENTS_MODE": "inline", "PENSTOCK_DEMO": "0"}, ("serve", "worker")),
    ],
)
def test_the_parts_are_those_the_settings_need_in_the_order_they_stop(
    environ: dict[str, str], parts: tuple[str, ...]
) -> None:
    assert parts_of(load_settings(environ)) == parts


def test_the_parts_are_told_everything_by_their_environment(tmp_path: Path) -> None:
    settings = load_settings(
        {"PENSTOCK_ADMIN_TOKEN": TOKEN, "PENSTOCK_PORT": "8799", "PENSTOCK_DATA_DIR": str(tmp_path)}
    )

    told = child_environ(settings, "postgresql:///x", {"PENSTOCK_URL": "http://else", "KEEP": "me"})

    parts = load_settings(told)
    assert told["KEEP"] == "me"
    assert parts.base_url == "http://127.0.0.1:8799"
    assert parts.data_dir == tmp_path
    assert parts.database_url is not None
    assert parts.database_url.get_secret_value() == "postgresql:///x"
    for secret in (parts.admin_token, parts.token):
        assert secret is not None
        assert secret.get_secret_value() == TOKEN


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8700"),
        ("0.0.0.0", "http://127.0.0.1:8700"),  # noqa: S104
        ("::", "http://[::1]:8700"),
        ("10.1.2.3", "http://10.1.2.3:8700"),
    ],
)
def test_a_server_on_every_address_is_reached_on_the_loopback(host: str, url: str) -> None:
    assert local_url(Settings(host=host)) == url


def test_port_zero_becomes_a_port_that_all_parts_agree_on() -> None:
    settings = resolved(Settings(port=0))

    assert settings.port > 0
    assert settings.data_dir.is_absolute()


def test_a_taken_port_is_refused_with_another_one_to_choose() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(
            SetupIncomplete, match=f"port {port}, found Address already in use"
        ) as no:
            listen(Settings(port=port))

    assert "PENSTOCK_PORT=" in no.value.remedy


@pytest.mark.parametrize(
    ("health", "pids", "whole"),
    [
        ({"ingress": {"pid": 7}}, {"ingress": 7, "serve": 1}, True),
        ({"ingress": {"pid": 6}}, {"ingress": 7, "serve": 1}, False),
        ({"ingress": None}, {"serve": 1}, True),
        ({"ingress": {}}, {"ingress": 7}, True),
    ],
)
def test_an_ingress_of_an_earlier_life_does_not_count(
    health: dict[str, Any], pids: dict[str, int], whole: bool
) -> None:
    assert is_whole(health, pids) is whole


class Database:
    """A database that died, and may fail to start."""

    def __init__(self) -> None:
        self.looks = 0
        self.fails = False

    def revive(self) -> bool:
        self.looks += 1
        if self.fails:
            raise SetupIncomplete("PostgreSQL did not start")
        return self.looks == 1


def test_a_dead_database_is_started_again_and_looked_at_now_and_then_only() -> None:
    database, said = Database(), list[str]()
    keeper = Keeper(cast("Any", database), said.append)

    for _ in range(50):
        keeper.look()

    assert said == ["PostgreSQL had died and was started again"]
    assert database.looks == 1


def test_a_database_that_does_not_start_is_said_and_does_not_end_the_supervisor() -> None:
    database, said = Database(), list[str]()
    database.fails = True

    Keeper(cast("Any", database), said.append).look()

    assert said == ["PostgreSQL does not start, trying again: PostgreSQL did not start"]


class Up:
    """A real `penstock up` in inline mode: no Spark, everything else as it is."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.folder = folder
        self.token = secrets.token_urlsafe(32)
        self.environ = {
            **{name: value for name, value in os.environ.items() if "PENSTOCK" not in name},
            "PENSTOCK_DATA_DIR": str(folder / "data"),
            "PENSTOCK_PORT": str(self.port),
            "PENSTOCK_ADMIN_TOKEN": self.token,
            "PENSTOCK_EVENTS_MODE": "inline",
        }
        self.process: subprocess.Popen[str] | None = None
        self.talk: IO[str] = (folder / "talk").open("w+")
        self.family: list[psutil.Process] = []

    def start(self) -> str:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", "up"],
            env=self.environ, stdout=subprocess.PIPE, stderr=self.talk, text=True,
            start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.family = psutil.Process(self.process.pid).children(recursive=True)
        return line

    def said(self) -> str:
        logs = sorted((self.folder / "data" / "logs").glob("*.log"))
        return "\n".join(path.read_text()[-2_000:] for path in (self.folder / "talk", *logs))

    def get(self, path: str) -> Any:
        headers = {"authorization": f"Bearer {self.token}"}
        answer = httpx.get(f"http://127.0.0.1:{self.port}{path}", headers=headers, timeout=5)
        answer.raise_for_status()
        return answer.json()

    def pid(self, part: str) -> int | None:
        assert self.process is not None
        for child in psutil.Process(self.process.pid).children():
            if child.cmdline()[2:4] == ["penstock.cli", part]:
                return child.pid
        return None


@pytest.fixture
def product() -> Iterator[Up]:
    # Not in pytest's own folder: another run closes that to others, the database's user included.
    with tempfile.TemporaryDirectory(prefix="penstock-up-") as folder:
        product = Up(Path(folder))
        yield product
        _clear_away(product)


def _clear_away(product: Up) -> None:
    if product.process is not None and product.process.poll() is None:
        product.process.kill()
        product.process.wait()
    for process in product.family:
        if lives(process):
            process.kill()
    product.talk.close()


def lives(process: psutil.Process) -> bool:
    """Whether it still does anything; a dead one that nobody buried yet does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(claim: Callable[[], bool], *, seconds: float = 30.0) -> None:
    """Wait for a claim to become true; an answer that does not come is not true yet."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        try:
            if claim():
                return
        except (httpx.HTTPError, psutil.Error):
            pass
        time.sleep(0.02)
    raise AssertionError("waited too long")


@pytest.mark.prove
def test_up_prints_one_line_and_its_token_stands_on_no_command_line(product: Up) -> None:
    line = product.start()

    expected = f"ready  http://127.0.0.1:{product.port}/  token {product.token}\n"
    assert line == expected, product.said()
    until(lambda: product.get("/admin/ledger")["data"]["stored"] >= 30)  # the demo is alive
    assert len(product.family) >= 3
    assert not any(product.token in word for child in product.family for word in child.cmdline())

    second = subprocess.run(
        [sys.executable, "-m", "penstock.cli", "up"],
        env={**product.environ, "PENSTOCK_PORT": "0"}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (second.returncode, second.stdout) == (1, "")
    first, fix = second.stderr.splitlines()
    assert re.match(r"error  setup_incomplete: expected .* to be free, found `penstock up`", first)
    assert fix.startswith("  fix  ")


@pytest.mark.prove
def test_a_killed_server_comes_back_and_ctrl_c_stops_everything_cleanly(product: Up) -> None:
    product.start()
    assert product.process is not None
    killed = product.pid("serve")
    assert killed is not None, product.said()

    os.kill(killed, signal.SIGKILL)

    until(lambda: product.pid("serve") not in (None, killed) and bool(product.get("/healthz")))
    family = psutil.Process(product.process.pid).children(recursive=True)
    product.family += family
    product.process.send_signal(signal.SIGINT)
    out, _ = product.process.communicate(timeout=60)
    assert (product.process.returncode, out) == (0, ""), product.said()
    assert [str(process) for process in family if lives(process)] == []


@pytest.mark.prove
def test_when_the_supervisor_is_killed_its_parts_end_and_the_next_start_is_whole(
    product: Up,
) -> None:
    product.start()
    assert product.process is not None
    parts = [child for child in product.family if "penstock.cli" in child.cmdline()]
    assert len(parts) == 3

    product.process.kill()
    product.process.communicate()

    until(lambda: not any(lives(part) for part in parts))
    assert product.start().startswith("ready  ")
    product.process.send_signal(signal.SIGTERM)
    assert product.process.wait(60) == 0, product.said()
    assert not (product.folder / "data" / "postgres" / "data" / "postmaster.pid").exists()


def test_a_token_that_nobody_chose_is_made_once_and_kept_for_its_owner_only(
    tmp_path: Path,
) -> None:
    settings = Settings(data_dir=tmp_path / "data")

    first, second = with_admin_token(settings), with_admin_token(settings)

    kept = tmp_path / "data" / "admin.token"
    assert first.admin_token == second.admin_token
    assert kept.stat().st_mode & 0o777 == 0o600
    assert token_of(settings) == kept.read_text().strip()
    assert kept.read_text().startswith("pst_")


def test_a_given_token_is_used_and_not_written_down(tmp_path: Path) -> None:
    settings = load_settings({"PENSTOCK_ADMIN_TOKEN": TOKEN, "PENSTOCK_DATA_DIR": str(tmp_path)})

    assert with_admin_token(settings) is settings
    assert list(tmp_path.iterdir()) == []
