"""Hold settings to their names, their aliases and their limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.base.errors import SettingsInvalid
from penstock.base.settings import ALIASES, Settings, load_settings


def refusal(**environ: str) -> SettingsInvalid:
    with pytest.raises(SettingsInvalid) as caught:
        load_settings(environ)
    return caught.value


def test_an_empty_environment_gives_the_defaults() -> None:
    settings = load_settings({"PATH": "/bin", "HOME": "/root"})

    assert settings == Settings()
    assert (settings.host, settings.port) == ("127.0.0.1", 8700)
    assert settings.data_dir == Path(".penstock")
    assert settings.auth == "on"
    assert settings.registry_mode == "strict"
    assert settings.events_mode == "spool"


def test_every_setting_has_a_description() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_a_variable_sets_its_setting() -> None:
    settings = load_settings({"PENSTOCK_PORT": "9000", "PENSTOCK_DEMO": "0"})

    assert settings.port == 9000
    assert settings.demo is False


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    assert load_settings({"PENSTOCK_PORT": ""}) == Settings()


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_a_name_of_the_seeds_sets_the_same_setting(alias: str, name: str) -> None:
    value = {"queue_name": "q", "events_mode": "inline", "allow_inline_mode": "1"}.get(name, "3")

    assert load_settings({alias: value}) == load_settings({f"PENSTOCK_{name.upper()}": value})


def test_our_own_name_wins_over_an_alias() -> None:
    environ = {"APPHUB_EVENT_QUEUE_NAME": "theirs", "PENSTOCK_QUEUE_NAME": "ours"}

    assert load_settings(environ).queue_name == "ours"


def test_a_misspelt_setting_is_refused_with_the_nearest_name() -> None:
    assert str(refusal(PENSTOCK_PROT="1")) == (
        "PENSTOCK_PROT is not a setting. Did you mean PENSTOCK_PORT?"
    )


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("PENSTOCK_PORT", "high", "expected a whole number, found 'high'"),
        ("PENSTOCK_PORT", "65536", "expected at most 65535, found '65536'"),
        ("PENSTOCK_ADMIN_TOKEN", "short", "expected at least 24 characters, found 5 characters"),
        ("PENSTOCK_AUTH", "maybe", "expected 'on' or 'off', found 'maybe'"),
        ("PENSTOCK_DEMO", "maybe", "expected 1 or 0, true or false, found 'maybe'"),
        (
            "PENSTOCK_QUEUE_NAME",
            "../etc",
            "expected text that matches ^[A-Za-z0-9_-]{1,100}$, found '../etc'",
        ),
        ("PENSTOCK_REGISTRY_MODE", "loose", "expected 'strict' or 'open', found 'loose'"),
        ("EVENT_INGRESS_CONCURRENCY", "0", "expected at least 1, found '0'"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(
    variable: str, value: str, sentence: str
) -> None:
    error = refusal(**{variable: value})

    name = ALIASES.get(variable, variable.removeprefix("PENSTOCK_").lower())
    assert str(error) == f"PENSTOCK_{name.upper()}: {sentence}"


def test_a_refused_secret_is_not_shown() -> None:
    assert "hunter2" not in str(refusal(PENSTOCK_ADMIN_TOKEN="hunter2"))


def test_authentication_cannot_be_off_where_others_can_connect() -> None:
    assert "loopback" in str(refusal(PENSTOCK_AUTH="off", PENSTOCK_HOST="0.0.0.0"))  # noqa: S104
    assert load_settings({"PENSTOCK_AUTH": "off", "PENSTOCK_HOST": "::1"}).auth == "off"


def test_redis_url_inline_needs_to_be_allowed() -> None:
    assert "APPHUB_ALLOW_INLINE_MODE" in str(refusal(REDIS_URL="inline"))
    allowed = {"REDIS_URL": "inline", "APPHUB_ALLOW_INLINE_MODE": "true"}
    assert load_settings(allowed).events_mode == "inline"


def test_the_queue_modes_of_the_seeds_mean_the_spool() -> None:
    assert load_settings({"APPHUB_EVENTS_MODE": "redis"}).events_mode == "spool"


def test_the_address_of_the_server_follows_from_host_and_port() -> None:
    assert load_settings({"PENSTOCK_HOST": "::1"}).base_url == "http://[::1]:8700"
    assert load_settings({"PENSTOCK_URL": "https://x"}).base_url == "https://x"
