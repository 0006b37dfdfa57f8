"""Open the sink that an address names, given or from the environment.

Publishing knows no transport. The scheme of the address does, by name, and the transport is loaded
when an address first asks for it: a program that publishes in-process never loads an HTTP client.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping

from penstock.base.errors import SettingsInvalid
from penstock.base.settings import load_settings
from penstock.publish.port import Connection

_OPENERS = {
    "http": "penstock.transport.over_http:HttpSink",
    "https": "penstock.transport.over_http:HttpSink",
}


def named(url: str | None, token: str | None, environ: Mapping[str, str]) -> tuple[str, str | None]:
    """An address and a token; what is None comes from PENSTOCK_URL and PENSTOCK_TOKEN."""
    if url is not None and token is not None:
        return url, token
    settings = load_settings(environ)
    kept = settings.token.get_secret_value() if settings.token else None
    return url or settings.base_url, token or kept


def open_sink(url: str | None, token: str | None, environ: Mapping[str, str]) -> Connection:
    """A sink at `url` with `token`, or where the environment says."""
    url, token = named(url, token, environ)
    scheme = url.partition("://")[0].lower()
    if scheme not in _OPENERS:
        raise SettingsInvalid(
            f"PENSTOCK_URL: expected an address like http://127.0.0.1:8700, found {url[:80]!r}"
        )
    opener: Callable[[str, str | None], Connection] = pkgutil.resolve_name(_OPENERS[scheme])
    return opener(url, token)
