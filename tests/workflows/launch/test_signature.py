"""A signature proves who sent a message, when, and that nobody changed it."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import SettingsInvalid
from penstock.workflows.launch.errors import SignatureInvalid
from penstock.workflows.launch.signature import message_id, read_secret, signed_headers, verify

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + base64.b64encode(b"o" * 32).decode()
NOW = datetime(2026, 3, 1, 10, 30, tzinfo=UTC)
BODY = b'{"rows": 7}'


def headers(**changed: str) -> dict[str, str]:
    made = signed_headers("msg_1", NOW, BODY, [SECRET])
    return {**made, **{f"webhook-{name}": value for name, value in changed.items()}}


def test_the_signature_is_the_one_that_standard_webhooks_publishes() -> None:
    at = datetime.fromtimestamp(1614265330, UTC)

    made = signed_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", at, b'{"test": 2432232314}', [SECRET])

    assert made == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_signed_message_is_verified() -> None:
    assert verify(headers(), BODY, [SECRET], now=NOW) == "msg_1"


def test_header_names_may_come_in_any_case() -> None:
    shouted = {name.upper(): value for name, value in headers().items()}

    assert verify(shouted, BODY, [SECRET], now=NOW) == "msg_1"


@pytest.mark.parametrize("seconds", [-300, 0, 300])
def test_a_message_within_five_minutes_is_taken(seconds: int) -> None:
    assert verify(headers(), BODY, [SECRET], now=NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize("seconds", [-301, 301, 86_400])
def test_an_older_or_later_message_is_refused(seconds: int) -> None:
    with pytest.raises(SignatureInvalid, match="within 300 s"):
        verify(headers(), BODY, [SECRET], now=NOW + timedelta(seconds=seconds))


def test_while_a_secret_is_replaced_either_side_may_be_ahead() -> None:
    both = signed_headers("msg_1", NOW, BODY, [OTHER, SECRET])

    assert both["webhook-signature"].count("v1,") == 2
    assert verify(both, BODY, [SECRET], now=NOW)
    assert verify(both, BODY, [OTHER], now=NOW)
    assert verify(headers(), BODY, [OTHER, SECRET], now=NOW)


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "msg_2"},
        {"timestamp": str(int(NOW.timestamp()) + 1)},
        {"timestamp": "\u0661"},
        {"timestamp": "-1"},
        {"timestamp": ""},
        {"id": ""},
        {"signature": ""},
        {"signature": "v1,"},
        {"signature": headers()["webhook-signature"][:-1]},
        {"signature": headers()["webhook-signature"].replace("v1,", "v2,")},
        {"signature": headers()["webhook-signature"].replace("v1,", "")},
        {"signature": "v1,ünïcode"},
    ],
)
def test_a_changed_header_is_refused(changed: dict[str, str]) -> None:
    with pytest.raises(SignatureInvalid):
        verify(headers(**changed), BODY, [SECRET], now=NOW)


def test_an_unsigned_message_and_a_receiver_without_secrets_prove_nothing() -> None:
    with pytest.raises(SignatureInvalid):
        verify(signed_headers("msg_1", NOW, BODY, []), BODY, [SECRET], now=NOW)
    with pytest.raises(SignatureInvalid):
        verify(headers(), BODY, [], now=NOW)


@given(st.binary(max_size=64), st.integers(0, 63), st.integers(1, 255))
def test_one_flipped_byte_of_the_body_is_noticed(body: bytes, at: int, flip: int) -> None:
    made = signed_headers("msg_1", NOW, body + b"!", [SECRET])
    changed = bytearray(body + b"!")
    changed[at % len(changed)] ^= flip

    with pytest.raises(SignatureInvalid):
        verify(made, bytes(changed), [SECRET], now=NOW)


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_short", "whsec_" + "A" * 28, "whsec_" + "A" * 200, "whsec_ä"]
)
def test_a_secret_that_is_none_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(SettingsInvalid) as refused:
        read_secret(secret)

    assert len(secret) < 8 or secret not in str(refused.value)


def test_an_id_never_moves_the_seams_of_the_signed_text() -> None:
    assert message_id("run-1:step_2") == "run-1:step_2"
    assert "." not in message_id("a.1700000000.b")
    assert message_id("a.b") != message_id("a.c")
    assert message_id("ü" * 300).startswith("msg_")
