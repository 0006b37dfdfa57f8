"""Live events with personal data are opened for those who may see it, and for nobody else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from tests.store.privacy.support import (
    NOON,
    PAYLOAD,
    PLAIN,
    REGISTRY,
    accepted,
    judged,
    stored,
    vault,
)

from penstock.envelope.envelope import JsonObject, Stored
from penstock.store.onward.reach import Stretch
from penstock.store.privacy.cipher import RootKey
from penstock.store.privacy.hide import Hiding
from penstock.store.privacy.in_memory import KeysInMemory
from penstock.store.query import EventQuery
from penstock.store.view import view
from penstock.stream.frames import Form, Parcel, Style
from penstock.stream.opening import OpenableLog

KEYS = KeysInMemory()
HIDDEN = stored(accepted(Hiding(vault(KEYS)).hide([judged()], REGISTRY)[0]), 1)
EVERYTHING = EventQuery("default")
OTHER = stored(accepted(judged("evt-2", PLAIN, payload={"n": 1})), 2)


@dataclass
class Kept:
    """A log of these two events."""

    def after(self, position: int, limit: int) -> list[Stored]:
        return [each for each in (HIDDEN, OTHER) if each.position > position][:limit]

    def matching(self, query: EventQuery, *, after: int, until: int, limit: int) -> Stretch:
        assert query.tenant_id == "default"
        return Stretch(self.after(after, limit), until)

    def head(self) -> int:
        return 2


def log(root: RootKey | None = None) -> OpenableLog:
    opener = vault(KEYS) if root is None else vault(KEYS, root)
    return OpenableLog(Kept(), registry=lambda: REGISTRY, vault=opener)


def shown(event: Stored, *, upcast: bool = True) -> JsonObject:
    return view(event, REGISTRY, now=NOON, upcast=upcast)


def payload(event: Stored, style: Style, *, is_open: bool) -> Any:
    (frame,) = Parcel(event, shown, NOON).entry(Form(style, is_open=is_open)).frames
    said = json.loads(frame.body)
    return said["data"] if style is Style.CLOUDEVENTS else said["data"]["event"]["payload"]


@pytest.mark.parametrize("style", list(Style))
def test_who_may_see_it_sees_what_was_sent(style: Style) -> None:
    event, _ = log().after(0, 10)

    assert payload(event, style, is_open=True) == PAYLOAD


@pytest.mark.parametrize("style", list(Style))
def test_who_may_see_it_sees_it_after_resuming_too(style: Style) -> None:
    event, _ = log().matching(EVERYTHING, after=0, until=2, limit=10).events

    assert payload(event, style, is_open=True) == PAYLOAD
    assert set(payload(event, style, is_open=False)["email"]) == {"$masked", "subject"}


@pytest.mark.parametrize("style", list(Style))
def test_all_others_see_a_mask_in_every_style(style: Style) -> None:
    event, _ = log().after(0, 10)

    seen = payload(event, style, is_open=False)

    assert set(seen["email"]) == {"$masked", "subject"}
    assert seen["note"] == PAYLOAD["note"]


@pytest.mark.parametrize("style", list(Style))
def test_an_event_that_came_without_its_keys_is_masked_for_everybody(style: Style) -> None:
    assert set(payload(HIDDEN, style, is_open=True)["email"]) == {"$masked", "subject"}


def test_with_another_root_key_the_stream_goes_on_masked() -> None:
    event, other = log(RootKey(b"x" * 32)).after(0, 10)

    assert set(payload(event, Style.NATIVE, is_open=True)["email"]) == {"$masked", "subject"}
    assert payload(other, Style.NATIVE, is_open=True) == {"n": 1}


def test_the_log_itself_is_the_other_reader_s() -> None:
    assert log().head() == 2
    assert log().matching(EVERYTHING, after=1, until=7, limit=10) == Stretch([OTHER], 7)
    assert [each.position for each in log().after(0, 1)] == [1]
