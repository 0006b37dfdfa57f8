"""Decide which addresses a request may go to: public ones, and those an operator listed.

    url ── read_target ──▶ Target ── Guard.judge ──▶ ok by its letters
                              │ resolved once, by over_http
                              ▼
              Guard.admit(target, addresses) ──▶ the addresses to connect to, or OutboundRefused

Pure: names are resolved elsewhere, once, and the connection goes to an address that was admitted
here, so a name that changes its mind in between changes nothing. One answer that is not public
refuses them all. tests/workflows/launch/test_guard.py tries more than a thousand private forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final, Literal, TypeAlias, cast

from penstock.base.errors import SettingsInvalid
from penstock.workflows.launch.errors import OutboundRefused

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

URL_LENGTH_MAX: Final = 2048
PORTS: Final = frozenset({80, 443, 8080, 8443})

# Written by us, not by a URL library: what is checked here is exactly what is connected to.
_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<path>/[!$-;=@-\[\]_a-z~]*)?(?P<query>\?[!$-;=?-\[\]_a-z~]*)?"
)
_LABEL: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_NUMBER: Final = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")

# Cloud metadata: asked by name or by address, it hands out credentials.
_METADATA_NAMES: Final = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "metadata.azure.internal"}
    | {"instance-data", "instance-data.ec2.internal", "metadata.tencentyun.com"}
)
_METADATA: Final = frozenset(
    map(
        ip_address,
        (
            *("169.254.169.254", "169.254.170.2", "169.254.170.23", "168.63.129.16"),
            *("100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"),
        ),
    )
)
# What `is_global` lets through, in one Python version or another, and no request should.
_SPECIAL: Final = tuple(
    map(
        ip_network,
        (
            *("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.31.196.0/24", "192.52.193.0/24"),
            *("192.88.99.0/24", "192.175.48.0/24", "198.18.0.0/15", "224.0.0.0/3"),
            # Within 2000::/3: protocol assignments with Teredo, documentation, 6to4, AS112.
            *("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48"),
        ),
    )
)
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes, in parts that nobody parses again."""

    scheme: Literal["http", "https"]
    host: str  # a name in lower case, or an address without brackets
    port: int
    path: str  # with its query

    @property
    def authority(self) -> str:
        """The host and its port, as a `Host` header says them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        is_usual = self.port == (443 if self.scheme == "https" else 80)
        return host if is_usual else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """The target without its path."""
        return f"{self.scheme}://{self.authority}"

    @property
    def address(self) -> Address | None:
        """The address, when the host is one and not a name."""
        return _literal(self.host)


def read_target(url: str) -> Target:
    """The parts of a URL; OutboundRefused for every form that two programs could read two ways."""
    found = _URL.fullmatch(url) if len(url) <= URL_LENGTH_MAX else None
    if found is None:
        raise OutboundRefused(
            f"expected http(s)://host[:port]/path in at most {URL_LENGTH_MAX} plain characters "
            "without credentials or fragment, found something else"
        )
    scheme = cast("Literal['http', 'https']", found["scheme"])
    port = int(found["port"] or (443 if scheme == "https" else 80))
    path = (found["path"] or "/") + (found["query"] or "")
    if not 0 < port < 65_536:
        raise OutboundRefused(f"expected a port from 1 to 65535, found {port}")
    return Target(scheme, _read_host(found["host"]), port, path)


def is_public(address: Address) -> bool:
    """Whether anybody on the internet may be at this address, and nobody else."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if address in _METADATA or any(address in network for network in _SPECIAL):
        return False
    if isinstance(address, IPv6Address):
        return address in _GLOBAL_UNICAST and int(address) >> 32 & 0xFFFFFFFF not in _ISATAP
    return True


@dataclass(frozen=True, slots=True)
class Guard:
    """What is allowed beyond the public internet, and what is not allowed in any case."""

    allowed: tuple[Network, ...] = ()  # listed by an operator
    ports: frozenset[int] = PORTS  # at addresses that nobody listed
    blocked_ports: frozenset[int] = frozenset()  # our own: refused wherever they seem to be

    @classmethod
    def of(
        cls,
        allowed_cidrs: Iterable[str] = (),
        *,
        ports: Iterable[int] = PORTS,
        blocked_ports: Iterable[int] = (),
    ) -> Guard:
        """A guard from settings; SettingsInvalid names the network that is none."""
        try:
            allowed = tuple(ip_network(cidr.strip()) for cidr in allowed_cidrs)
        except ValueError as error:
            raise SettingsInvalid(
                f"PENSTOCK_ALLOWED_OUTBOUND: expected networks, found {error}",
                remedy="Write networks like 10.20.0.0/16 or fd00:1::/64, separated by commas.",
            ) from None
        return cls(allowed, frozenset(ports), frozenset(blocked_ports))

    def judge(self, url: str) -> Target:
        """The target, unless its letters alone forbid it; for checking before anything is sent."""
        target = read_target(url)
        if target.port in self.blocked_ports:
            raise OutboundRefused(
                f"expected a port that is not Penstock's own, found {target.port}"
            )
        if target.host in _METADATA_NAMES:
            raise OutboundRefused(f"expected a public host, found the metadata name {target.host}")
        if target.address is not None:
            self.admit(target, [target.address])
        return target

    def admit(self, target: Target, addresses: Sequence[Address]) -> tuple[Address, ...]:
        """The addresses to connect to: all that the name has, if every one of them is allowed."""
        if not addresses:
            raise OutboundRefused(f"expected an address of {target.host}, found none")
        for address in addresses:
            self._check(target, address)
        return tuple(addresses)

    def _check(self, target: Target, address: Address) -> None:
        if target.port in self.blocked_ports:
            raise OutboundRefused(
                f"expected a port that is not Penstock's own, found {target.port}"
            )
        if self._is_listed(address):
            return
        if not is_public(address):
            raise OutboundRefused(
                f"expected {target.host} to have public addresses only, found one that is not"
            )
        if target.port not in self.ports:
            allowed = ", ".join(map(str, sorted(self.ports)))
            raise OutboundRefused(f"expected one of the ports {allowed}, found {target.port}")

    def _is_listed(self, address: Address) -> bool:
        """Whether an operator listed it; a metadata service only counts when listed alone."""
        return any(
            address.version == network.version
            and address in network
            and (address not in _METADATA or network.num_addresses == 1)
            for network in self.allowed
        )


def _read_host(host: str) -> str:
    if host.startswith("["):
        address = _literal(host[1:-1])
        if not isinstance(address, IPv6Address):
            raise OutboundRefused("expected an IPv6 address in brackets, found something else")
        return address.compressed
    labels = host.lower().split(".")
    if _NUMBER.fullmatch(labels[-1]):  # then every resolver reads the whole as a number, somehow
        address = _literal(host)
        if address is None:
            raise OutboundRefused("expected an address as four decimal numbers, found another form")
        return str(address)
    if not all(_LABEL.fullmatch(label) for label in labels):
        raise OutboundRefused("expected a host name of letters, digits and hyphens, found another")
    return ".".join(labels)


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
