"""A client may say ping and change its filter, ten times a second."""

from __future__ import annotations

import pytest

from penstock.base.errors import NotInProfile, QueryInvalid
from penstock.stream.inbound import Allowance, Ping, Refilter, read_request


@pytest.mark.parametrize("text", ["ping", '{"type":"ping"}', '{"type":"ping","data":{}}'])
def test_a_ping_is_understood_as_text_and_as_json(text: str) -> None:
    assert read_request(text) == Ping()


def test_a_filter_is_understood() -> None:
    request = read_request('{"type":"filter","data":{"type":"a.*","tags":{"k":"v"}}}')

    assert request == Refilter((("type", "a.*"), ("tag.k", "v")))


@pytest.mark.parametrize(
    "text", ['{"type":"subscribe"}', "[]", "1", '"ping"', '{"type":["ping"]}', '{"type":"filter"}']
)
def test_another_frame_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(QueryInvalid) as caught:
        read_request(text)

    assert caught.value.remedy


@pytest.mark.parametrize("text", ["", "{", "PING", '{"type":"ping","type":"ping"}', "[" * 40])
def test_what_is_no_strict_json_is_refused(text: str) -> None:
    with pytest.raises(NotInProfile):
        read_request(text)


def test_ten_messages_in_a_second_are_fine_and_the_eleventh_is_not() -> None:
    allowance = Allowance(10)

    assert all(allowance.spend(5 + n * 0.05) for n in range(10))
    assert not allowance.spend(5.9)


def test_a_slow_talker_may_talk_for_ever() -> None:
    allowance = Allowance(10)

    assert all(allowance.spend(n * 0.125) for n in range(1_000))
