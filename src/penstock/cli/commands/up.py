"""Start the whole product, print one line when it is ready, keep it running, stop it cleanly.

lock the data directory ─▶ check ─▶ PostgreSQL ─▶ parts ─▶ `ready  <url>  token <token>`
                                                    └ restarted when they die
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.base.errors import PenstockError, SetupIncomplete
from penstock.base.process import Stop, adopt_orphans, reap_orphans
from penstock.base.settings import Settings, load_settings
from penstock.cli import report
from penstock.cli.checks import find_java
from penstock.cli.child import Launch
from penstock.cli.commands.serve import listen
from penstock.cli.connect import with_admin_token
from penstock.cli.options import AsJson
from penstock.cli.part import reaching_the_store
from penstock.cli.supervisor import Supervisor

if TYPE_CHECKING:
    from penstock.house import Database

_LOOK_EVERY_S = 0.2
_AFTER_FAILURE_S = 1.0


def up(as_json: AsJson = False) -> None:
    """Start everything and keep it running."""
    stop = Stop.on_signals()
    adopt_orphans()
    settings = resolved(load_settings(os.environ))
    with _only_one(settings.data_dir):
        _check(settings)
        settings = with_admin_token(settings)
        with _database(settings) as database:
            _supervise(settings, database, stop, as_json=as_json)


def resolved(settings: Settings) -> Settings:
    """The settings with everything pinned that the parts must agree on."""
    port = settings.port or _free_port(settings.host)
    return settings.model_copy(
        update={"data_dir": settings.data_dir.resolve(), "port": port, "url": None}
    )


def parts_of(settings: Settings) -> tuple[str, ...]:
    """The parts that these settings need, in the order in which they stop."""
    demo = ("demo",) if settings.demo else ()
    ingress = () if settings.events_mode == "inline" else ("ingress",)
    return (*demo, "serve", *ingress, "worker")


def child_environ(settings: Settings, dsn: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What the parts find in their environment: ours, with every choice made explicit."""
    assert settings.admin_token is not None  # noqa: S101  `up` has just made sure
    token = settings.admin_token.get_secret_value()
    return {
        **environ,
        "PENSTOCK_DATA_DIR": str(settings.data_dir),
        "PENSTOCK_DATABASE_URL": dsn,
        "PENSTOCK_PORT": str(settings.port),
        "PENSTOCK_ADMIN_TOKEN": token,
        "PENSTOCK_URL": local_url(settings),
        "PENSTOCK_TOKEN": token,
    }


def local_url(settings: Settings) -> str:
    """Where this machine reaches the server, also when it listens on every address."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104
    return settings.model_copy(update={"host": host, "url": None}).base_url


@contextlib.contextmanager
def _only_one(data_dir: Path) -> Iterator[None]:
    data_dir.mkdir(parents=True, exist_ok=True)
    with (data_dir / "up.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise SetupIncomplete(
                f"expected {data_dir} to be free, found `penstock up` on it as process "
                f"{lock.read().strip() or 'unknown'}",
                remedy="Use that one, stop it, or set PENSTOCK_DATA_DIR and PENSTOCK_PORT.",
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def _check(settings: Settings) -> None:
    """Refuse now what would otherwise fail again and again in a log."""
    listen(settings).close()
    if settings.events_mode != "inline":
        java = find_java(os.environ)
        if java.state != "ok":
            raise SetupIncomplete(f"expected {java.what}", remedy=f"{java.fix}.")


@contextlib.contextmanager
def _database(settings: Settings) -> Iterator[Database]:
    from penstock.house import prepare_database

    report.say("starting PostgreSQL and the parts …")
    with reaching_the_store():
        database = prepare_database(settings)
    try:
        yield database
    finally:
        database.leave()
        reap_orphans(())  # the server was ours to bury


def _supervise(settings: Settings, database: Database, stop: Stop, *, as_json: bool) -> None:
    from penstock.cli.probe import Probe

    environ = child_environ(settings, database.dsn, os.environ)
    launches = [
        Launch(
            name,
            (sys.executable, "-m", "penstock.cli", name, "--parent-pid", str(os.getpid())),
            environ,
            settings.data_dir / "logs" / f"{name}.log",
        )
        for name in parts_of(settings)
    ]
    probe = Probe(local_url(settings), environ["PENSTOCK_ADMIN_TOKEN"])
    supervisor = Supervisor(
        launches,
        stop=stop,
        answers=lambda: probe.answers(supervisor.pids()),
        announce=lambda: _announce(settings, as_json=as_json),
        say=report.say,
        chores=Keeper(database, report.say).look,
    )
    supervisor.run()
    report.say("stopped")


def _announce(settings: Settings, *, as_json: bool) -> None:
    assert settings.admin_token is not None  # noqa: S101
    url, token = f"{settings.base_url}/", settings.admin_token.get_secret_value()
    if as_json:
        report.document({"ready": True, "url": url, "token": token})
    else:
        report.line("ready", url, f"token {token}")


class Keeper:
    """Starts the embedded PostgreSQL again when it has died."""

    def __init__(self, database: Database, say: Callable[[str], None]) -> None:
        self._database = database
        self._say = say
        self._next_at = 0.0

    def look(self) -> None:
        """Look after the server, a few times a second; after a failed start, less often."""
        if time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + _LOOK_EVERY_S
        try:
            if self._database.revive():
                self._say("PostgreSQL had died and was started again")
        except PenstockError as error:
            self._say(f"PostgreSQL does not start, trying again: {error.detail}")
            self._next_at = time.monotonic() + _AFTER_FAILURE_S


def _free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as probe:
        port: int = probe.getsockname()[1]
        return port
