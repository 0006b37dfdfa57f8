"""Hold the opening of sinks to the settings."""

from __future__ import annotations

import pytest

from penstock.base.errors import SettingsInvalid
from penstock.publish.address import open_sink
from penstock.transport.over_http import HttpSink

ENVIRON = {"PENSTOCK_URL": "http://127.0.0.1:9999", "PENSTOCK_TOKEN": "pst_env"}


def opened(url: str | None, token: str | None, environ: dict[str, str]) -> tuple[str, str | None]:
    sink = open_sink(url, token, environ)
    assert isinstance(sink, HttpSink)
    client = sink._connections._of_threads()
    return str(client.base_url).rstrip("/"), client.headers.get("authorization")


@pytest.mark.parametrize(
    ("url", "token", "expected"),
    [
        (None, None, ("http://127.0.0.1:9999", "Bearer pst_env")),
        ("https://example.org", None, ("https://example.org", "Bearer pst_env")),
        (None, "pst_mine", ("http://127.0.0.1:9999", "Bearer pst_mine")),
        ("https://example.org", "pst_mine", ("https://example.org", "Bearer pst_mine")),
    ],
)
def test_what_is_not_said_comes_from_the_environment(
    url: str | None, token: str | None, expected: tuple[str, str]
) -> None:
    assert opened(url, token, ENVIRON) == expected


def test_without_settings_the_server_of_this_machine_is_meant() -> None:
    assert opened(None, None, {}) == ("http://127.0.0.1:8700", None)


def test_a_misspelt_setting_is_refused() -> None:
    with pytest.raises(SettingsInvalid, match="PENSTOCK_URL"):
        open_sink(None, None, {"PENSTOCK_ULR": "http://127.0.0.1"})


@pytest.mark.parametrize("url", ["ftp://x", "127.0.0.1:8700", "localhost"])
def test_an_address_of_no_known_kind_is_refused(url: str) -> None:
    with pytest.raises(SettingsInvalid, match="expected an address like http://"):
        open_sink(url, "t", {})
