"""Begin the life of a part: its logs, its stop, and the supervisor it follows into the grave."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from penstock.base.errors import StoreUnavailable
from penstock.base.logs import configure_logs
from penstock.base.process import Stop, follow_parent
from penstock.base.settings import Settings, load_settings


def begin(part: str, parent_pid: int | None) -> Settings:
    """Set up this process as `part` and return its settings."""
    settings = load_settings(os.environ)
    configure_logs(settings.log_level, part=part, secrets=_secrets(settings))
    if parent_pid is not None:
        follow_parent(parent_pid)
    return settings


def begin_stoppable(part: str, parent_pid: int | None) -> tuple[Settings, Stop]:
    """The same, for a part that stops when an event is set."""
    stop = Stop.on_signals()  # before anything else: a stop must not be missed
    return begin(part, parent_pid), stop


@contextlib.contextmanager
def reaching_the_store() -> Iterator[None]:
    """Turn what the database driver raises when nobody answers into an error of ours."""
    import psycopg

    try:
        yield
    except psycopg.OperationalError as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise StoreUnavailable(
            f"expected PostgreSQL to answer, found {said}",
            remedy="Start it, or unset PENSTOCK_DATABASE_URL to use the embedded one; "
            "`penstock doctor` looks closer.",
        ) from error


def _secrets(settings: Settings) -> list[str]:
    found = (settings.admin_token, settings.token)
    return [secret.get_secret_value() for secret in found if secret is not None]
