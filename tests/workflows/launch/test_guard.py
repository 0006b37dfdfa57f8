"""No request goes to an address that is not public, in whatever letters it is written."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import SettingsInvalid
from penstock.workflows.launch.errors import OutboundRefused
from penstock.workflows.launch.guard import Guard, is_public, read_target

PRIVATE_4 = (
    "0.0.0.0",  # noqa: S104
    *("0.1.2.3", "10.0.0.1", "10.255.255.254", "100.64.0.1", "100.127.255.254"),
    *("100.100.100.200", "127.0.0.1", "127.0.0.53", "127.1.2.3", "127.255.255.254"),
    *("168.63.129.16", "169.254.0.1", "169.254.169.254", "169.254.170.2", "169.254.255.254"),
    *("172.16.0.1", "172.31.255.254", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.31.196.1"),
    *("192.52.193.1", "192.88.99.1", "192.168.0.1", "192.168.255.254", "192.175.48.1"),
    *("198.18.0.1", "198.19.255.254", "198.51.100.1", "203.0.113.1", "224.0.0.1"),
    *("239.255.255.250", "240.0.0.1", "255.255.255.255"),
)
PRIVATE_6 = (
    *("::", "::1", "::2", "fe80::1", "fe80::5efe:7f00:1", "fec0::1", "fc00::1", "fd00::1"),
    *("fd00:ec2::254", "fd20:ce::254", "ff02::1", "ff0e::1", "100::1", "100:0:0:1::1"),
    *("64:ff9b::1", "64:ff9b:1::1", "2001::1", "2001:2::1", "2001:10::1", "2001:20::1"),
    *("2001:db8::1", "2001:1::1", "2002::1", "3fff::1", "5f00::1", "4000::1", "8000::1"),
    *("e000::1", "2620:4f:8000::1", "2600::5efe:a00:1", "2600::200:5efe:a00:1"),
)
PUBLIC = (
    *("1.1.1.1", "8.8.8.8", "93.184.215.14", "172.32.0.1", "100.128.0.1", "192.0.1.1"),
    *("198.20.0.1", "2606:4700::1111", "2a00:1450:4001:81b::200e", "2001:4860:4860::8888"),
)


def written(address: IPv4Address) -> Iterator[str]:
    """Every way we know to write an IPv4 address into a URL's host."""
    number, (a, b, c, d) = int(address), address.packed
    yield str(address)
    yield f"{address}."
    yield str(number)
    yield f"{number}."
    yield str(number + (1 << 32))
    yield hex(number)
    yield hex(number).upper()
    yield f"0x{number:032x}"
    yield f"0{number:o}"
    yield f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"
    yield f"0{a:o}.0{b:o}.0{c:o}.0{d:o}"
    yield f"{a:03d}.{b:03d}.{c:03d}.{d:03d}"
    yield f"{a}.{b}.{c << 8 | d}"
    yield f"{a}.{b << 16 | c << 8 | d}"
    yield f"{a}.0x{b:x}.0{c:o}.{d}"
    yield f"{a}.{b}.{c}.{d}.0x"
    yield f"%{ord(str(a)[0]):02x}{str(a)[1:]}.{b}.{c}.{d}"
    yield "".join(chr(ord(x) + 0xFEE0) if x.isdigit() else x for x in str(address))
    yield str(address).replace(".", "\u3002")
    yield f"[{address}]"
    low = f"{a:02x}{b:02x}:{c:02x}{d:02x}"
    yield f"[::ffff:{address}]"
    yield f"[::ffff:{low}]"
    yield f"[0:0:0:0:0:ffff:{low}]"
    yield f"[::ffff:0:{low}]"
    yield f"[::{address}]"
    yield f"[64:ff9b::{address}]"
    yield f"[64:ff9b::{low}]"
    yield f"[64:ff9b:1::{low}]"
    yield f"[2002:{low}::1]"
    yield f"[2001:0:{low}::1]"
    yield f"[2001:0:4136:e378:8000:63bf:{a ^ 255:02x}{b ^ 255:02x}:{c ^ 255:02x}{d ^ 255:02x}]"
    yield f"[fe80::5efe:{low}]"
    yield f"[fe80::1%25{a}]"
    yield f"user@{address}"
    yield f"example.com@{address}"
    yield f"{address}\\@example.com"
    yield f"{address}#@example.com"
    yield f"{address} example.com"
    yield f"\t{address}"


FORMS = [
    *(form for text in PRIVATE_4 for form in written(IPv4Address(text))),
    *(f"[{form}]" for text in PRIVATE_6 for form in (text, IPv6Address(text).exploded)),
]


def test_more_than_a_thousand_private_forms_are_refused() -> None:
    assert len(set(FORMS)) > 1_000

    got_through = []
    for form, scheme in itertools.product(FORMS, ("http", "https")):
        try:
            Guard().judge(f"{scheme}://{form}/")
        except OutboundRefused:
            continue
        got_through.append(form)

    assert got_through == []


@pytest.mark.parametrize("text", [*PRIVATE_4, *PRIVATE_6])
def test_a_name_with_a_private_address_is_refused(text: str) -> None:
    target = read_target("https://receiver.example/")

    with pytest.raises(OutboundRefused):
        Guard().admit(target, [ip_address(text)])


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_is_admitted(text: str) -> None:
    target, address = read_target("https://receiver.example/"), ip_address(text)

    assert is_public(address)
    assert Guard().admit(target, [address]) == (address,)


def test_one_private_answer_refuses_the_public_ones_beside_it() -> None:
    target = read_target("https://receiver.example/")

    with pytest.raises(OutboundRefused, match="public addresses only"):
        Guard().admit(target, [ip_address("8.8.8.8"), ip_address("10.0.0.1")])


def test_the_refusal_does_not_say_what_the_name_resolved_to() -> None:
    with pytest.raises(OutboundRefused) as refused:
        Guard().admit(read_target("https://receiver.example/"), [ip_address("10.11.12.13")])

    assert "10.11.12.13" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "//example.com/"),
        *("http:example.com", "http:///path", "http://", "https://?q", "javascript:alert(1)"),
        *("http://example.com:0/", "http://example.com:65536/", "http://example.com:8o/"),
        *("http://user:secret@example.com/", "http://example.com/#part", "http://ex ample.com/"),
        *("http://-example.com/", "http://example-.com/", "http://exa..mple.com/"),
        *("http://.example.com/", "http://example.com./", "http://[example.com]/", "http://[::g]/"),
        *("http://exämple.com/", "http://example.com\\/", "http://example.com/\r\nHost: x"),
        *("http://" + "a." * 130 + "com/", "http://example.com/" + "a" * 3_000),
    ],
)
def test_an_address_that_could_be_read_two_ways_is_refused(url: str) -> None:
    with pytest.raises(OutboundRefused):
        Guard().judge(url)


def test_an_address_is_taken_apart_once() -> None:
    target = read_target("https://Receiver.Example:8443/a/b?c=d%20e&f=?/")

    assert (target.scheme, target.host, target.port) == ("https", "receiver.example", 8443)
    assert target.path == "/a/b?c=d%20e&f=?/"
    assert read_target("http://[2606:4700::1111]").authority == "[2606:4700::1111]"
    assert read_target("http://example.com?q=1").path == "/?q=1"


@pytest.mark.parametrize("port", [22, 25, 5432, 6379, 8700, 9200])
def test_a_port_outside_the_list_is_refused(port: int) -> None:
    with pytest.raises(OutboundRefused, match="ports 80, 443, 8080, 8443"):
        Guard().judge(f"http://8.8.8.8:{port}/")


def test_our_own_ports_are_refused_even_where_everything_is_allowed() -> None:
    guard = Guard.of(["0.0.0.0/0"], blocked_ports=[8700])

    with pytest.raises(OutboundRefused, match="Penstock's own"):
        guard.judge("http://8.8.8.8:8700/")
    with pytest.raises(OutboundRefused, match="Penstock's own"):
        guard.judge("http://receiver.example:8700/")


def test_a_listed_network_is_open_at_any_port() -> None:
    guard = Guard.of(["10.1.0.0/16"])

    assert guard.judge("http://10.1.2.3:3000/").port == 3000
    with pytest.raises(OutboundRefused):
        guard.judge("http://10.2.0.1:3000/")


def test_a_metadata_service_must_be_listed_alone() -> None:
    url = "http://169.254.169.254/"

    with pytest.raises(OutboundRefused):
        Guard.of(["169.254.0.0/16"]).judge(url)
    assert Guard.of(["169.254.169.254/32"]).judge(url).host == "169.254.169.254"


@pytest.mark.parametrize("name", ["metadata.google.internal", "METADATA", "instance-data"])
def test_metadata_names_are_refused_whatever_they_resolve_to(name: str) -> None:
    with pytest.raises(OutboundRefused, match="metadata"):
        Guard.of(["0.0.0.0/0"]).judge(f"http://{name}/")


@pytest.mark.parametrize("cidr", ["10.0.0.1/8", "ten", "", "10.0.0.0/33"])
def test_a_malformed_network_stops_the_start(cidr: str) -> None:
    with pytest.raises(SettingsInvalid, match="PENSTOCK_ALLOWED_OUTBOUND"):
        Guard.of([cidr])


@given(st.ip_addresses())
def test_what_is_public_is_global_and_nothing_embedded(address: IPv4Address | IPv6Address) -> None:
    if is_public(address):
        assert address.is_global
        assert not address.is_private
        if isinstance(address, IPv6Address):
            assert address.ipv4_mapped is None
            assert address.sixtofour is None
            assert address.teredo is None


@given(st.text(max_size=60))
def test_any_text_is_a_target_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"https://{text}/"):
        try:
            target = read_target(url)
        except OutboundRefused:
            continue
        assert target.host.isascii()
        assert "@" not in target.host
