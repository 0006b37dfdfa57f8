"""Open the client that a verb asks its questions with.

The token is PENSTOCK_TOKEN, else PENSTOCK_ADMIN_TOKEN, else what `penstock up` keeps in
`<data_dir>/admin.token`; it never stands on a command line, which every process can read.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from penstock.base.on_disk import kept_secret
from penstock.base.settings import Settings, load_settings

if TYPE_CHECKING:
    from penstock.cli.client import Client


def connect(settings: Settings | None = None, *, timeout_s: float = 30.0) -> Client:
    """A client of the server that the settings, or else the environment, name."""
    # An HTTP client is slow to load; only the verbs that ask a server wait for it.
    from penstock.cli.client import Client

    settings = settings or load_settings(os.environ)
    return Client(settings.base_url, token_of(settings), timeout_s=timeout_s)


def token_of(settings: Settings) -> str | None:
    """The token to send, by the order this module's header gives."""
    for given in (settings.token, settings.admin_token):
        if given is not None:
            return given.get_secret_value()
    try:
        return token_file(settings).read_text("utf-8").strip() or None
    except OSError:
        return None


def with_admin_token(settings: Settings) -> Settings:
    """The settings with an admin token: the given one, or one that is made once and kept."""
    from penstock.access.token import new_token

    if settings.admin_token is not None:
        return settings
    kept = kept_secret(token_file(settings), new_token)
    return settings.model_copy(update={"admin_token": SecretStr(kept)})


def token_file(settings: Settings) -> Path:
    """Where a token that nobody chose is kept."""
    return settings.data_dir / "admin.token"
