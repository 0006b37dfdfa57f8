"""A request may come from where it says only if that is us, or was listed."""

from __future__ import annotations

import pytest

from penstock.api.origin import allowed_host, allowed_origin, listed


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8700", "localhost:8700", "LOCALHOST:8700", "[::1]:8700", "p.example", "p.example:1",
     "q.example:9"],
)  # fmt: skip
def test_our_own_names_are_allowed(host: str) -> None:
    assert allowed_host(host, {"p.example", "q.example:9"}, 8700)


@pytest.mark.parametrize(
    "host",
    [
        None, "", "evil.example", "evil.example:8700", "localhost", "localhost:80",
        "127.0.0.1:8701",
        "q.example", "q.example:10", "localhost.:8700", "localhost.evil.example:8700",
        "127.0.0.1.evil.example:8700", "user@localhost:8700", "localhost:8700/path", "0.0.0.0:8700",
        "127.1:8700", "2130706433:8700", "[::ffff:127.0.0.1]:8700", "localhost:8700 ",
        " localhost:8700",
        "localhost:8700,evil.example", "localhost:", "localhost:8700\n", "localhost:+8700",
        "l\u00f6cal:8700",
        "localhost:\u0668\u0667\u0660\u0660",
    ],
)  # fmt: skip
def test_another_name_is_refused(host: str | None) -> None:
    assert not allowed_host(host, {"p.example", "q.example:9"}, 8700)


def test_without_a_port_the_default_one_is_meant() -> None:
    assert allowed_host("localhost", (), 80)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (None, "127.0.0.1:8700"),
        ("http://127.0.0.1:8700", "127.0.0.1:8700"),
        ("http://localhost:8700", "127.0.0.1:8700"),
        ("HTTP://LocalHost:8700", "127.0.0.1:8700"),
        ("http://[::1]:8700", "localhost:8700"),
        ("https://p.example", "p.example"),
        ("https://p.example", "p.example:443"),
        ("https://p.example:8443", "p.example:8443"),
        ("https://console.example", "p.example"),
    ],
)
def test_a_page_of_our_own_or_a_listed_one_may_talk_to_us(origin: str | None, host: str) -> None:
    assert allowed_origin(origin, host, {"https://console.example"}, 8700)


@pytest.mark.parametrize(
    "origin",
    [
        "", "null", "http://evil.example", "http://127.0.0.1", "http://127.0.0.1:3000",
        "http://localhost:8701", "http://console.example", "https://console.example:444",
        "https://console.example.evil.example", "https://evil.example/https://console.example",
        "file://", "chrome-extension://abc", "ftp://127.0.0.1:8700", "http://127.0.0.1:8700@evil.example",
        "http://evil.example#127.0.0.1:8700", "http://127.0.0.1:8700/", "http://127.0.0.1:8700 ",
    ],
)  # fmt: skip
def test_any_other_page_may_not(origin: str) -> None:
    assert not allowed_origin(origin, "127.0.0.1:8700", {"https://console.example"}, 8700)


def test_a_page_on_another_port_of_a_listed_host_is_another_page() -> None:
    assert not allowed_origin("https://p.example:8443", "p.example", (), 8700)


def test_a_setting_lists_names_between_commas() -> None:
    assert listed(" a.example, B.example ,,") == {"a.example", "b.example"}
    assert listed("") == frozenset()
