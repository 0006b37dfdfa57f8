"""Decide whether a request may come from where it says: the Host it names, the Origin it has.

    Host     a loopback name with our port, or a name from PENSTOCK_ALLOWED_HOSTS
    Origin   none (no browser), the very Host it talks to, a loopback one, or a listed one

Listening on loopback is no protection by itself: any web page can open a socket to it, and a DNS
name can be made to point at it. The first shows in Origin, the second in Host. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?)(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"(https?)://([^/?#@\s]+)")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def listed(text: str) -> frozenset[str]:
    """The names in a comma-separated setting."""
    return frozenset(part.strip().lower() for part in text.split(",") if part.strip())


def allowed_host(host_header: str | None, settings_hosts: Collection[str], port: int) -> bool:
    """Whether the Host header names this server.

    A listed name without a port stands for every port: a proxy in front has its own.
    """
    match = _AUTHORITY.fullmatch((host_header or "").lower())
    if match is None:
        return False
    name, given_port = match.groups()
    if name in settings_hosts or match.group(0) in settings_hosts:
        return True
    return name in _LOOPBACK and int(given_port or 80) == port


def allowed_origin(
    origin: str | None, host_header: str | None, settings_origins: Collection[str], port: int
) -> bool:
    """Whether a page of this origin may talk to us; call it for a Host that is allowed."""
    if origin is None:
        return True
    match = _ORIGIN.fullmatch(origin.lower())
    if match is None:
        return False  # "null", files, extensions
    scheme, authority = match.groups()
    if f"{scheme}://{authority}" in settings_origins:
        return True
    host = (host_header or "").lower().removesuffix(_DEFAULT_PORTS[scheme])
    if authority.removesuffix(_DEFAULT_PORTS[scheme]) == host:
        return True
    return allowed_host(authority, (), port)
