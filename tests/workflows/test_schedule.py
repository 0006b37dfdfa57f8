"""Schedules fire every slot they should, once, in their own time zone, however late."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base.clock import parse_instant
from penstock.envelope.envelope import JsonObject
from penstock.workflows.cron import instants, instants_until, last_instant
from penstock.workflows.errors import ScheduleInvalid
from penstock.workflows.schedule import Due, Schedule, due, next_fire_at, read_schedule

START = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
BERLIN = "Europe/Berlin"


def schedule(cron: str = "0 * * * *", **more: Any) -> Schedule:
    spec = read_schedule({"name": "hourly", "cron": cron, **more})
    return Schedule("s1", "default", "orders", spec, created_at=START)


def at(text: str) -> datetime:
    return parse_instant(f"{text}:00Z")


def slots(found: Due) -> list[str]:
    return [each.slot_at.strftime("%dT%H:%M") for each in found.occurrences]


def keep(one: Schedule, found: Due) -> Schedule:
    return replace(one, cursor=found.cursor)


def local(cron: str, zone: str, after: str, count: int) -> list[str]:
    found = islice(instants(cron, zone, at(after)), count)
    return [each.astimezone(ZoneInfo(zone)).strftime("%d %H:%M%z") for each in found]


def test_nothing_is_due_before_the_first_slot() -> None:
    found = due(schedule(), at("2026-05-01T12:59"))

    assert (found.occurrences, found.cursor) == ((), None)
    assert found.next_fire_at == at("2026-05-01T13:00") == next_fire_at(schedule())


def test_a_slot_is_due_at_its_instant_and_only_once() -> None:
    one = schedule()

    found = due(one, at("2026-05-01T13:00"))

    assert slots(found) == ["01T13:00"]
    assert found.next_fire_at == at("2026-05-01T14:00")
    assert due(keep(one, found), at("2026-05-01T13:00")).occurrences == ()


def test_two_schedulers_name_a_slot_alike() -> None:
    (one,) = due(schedule(), at("2026-05-01T13:00")).occurrences
    (other,) = due(schedule(), at("2026-05-01T13:00") + timedelta(seconds=4)).occurrences

    assert one == other
    assert one.event_id == "sched:s1:20260501T130000Z"
    assert one.run_key.key == "schedule-s1-20260501T130000Z"
    assert re.fullmatch(r"[A-Za-z0-9._:-]{1,128}", one.event_id)


def test_catching_up_all_fires_every_missed_slot_oldest_first() -> None:
    found = due(schedule(catchUp="all"), at("2026-05-01T15:30"))

    assert slots(found) == ["01T13:00", "01T14:00", "01T15:00"]


def test_catching_up_the_last_fires_one_slot_whose_window_covers_what_was_missed() -> None:
    one = replace(schedule(catchUp="last"), cursor=at("2026-05-01T13:00"))

    found = due(one, at("2026-05-01T16:30"))

    assert slots(found) == ["01T16:00"]
    assert found.occurrences[0].window_start == at("2026-05-01T13:00")
    assert found.cursor == at("2026-05-01T16:00")


def test_catching_up_none_passes_over_missed_slots_and_fires_a_fresh_one() -> None:
    one = schedule(catchUp="none")

    missed = due(one, at("2026-05-01T15:30"))
    fresh = due(keep(one, missed), at("2026-05-01T16:00") + timedelta(seconds=59))

    assert (slots(missed), missed.cursor) == ([], at("2026-05-01T15:00"))
    assert missed.next_fire_at == at("2026-05-01T16:00")
    assert slots(fresh) == ["01T16:00"]


def test_a_pass_takes_at_most_25_and_the_next_one_goes_on() -> None:
    one = schedule("* * * * *", catchUp="all")
    now = START + timedelta(minutes=60)
    fired: list[str] = []
    passes = 0

    while True:
        found = due(one, now)
        if not found.occurrences:
            break
        assert len(found.occurrences) <= 25
        fired += slots(found)
        passes += 1
        one = keep(one, found)

    assert passes == 3
    assert len(fired) == len(set(fired)) == 60
    assert found.next_fire_at == now + timedelta(minutes=1)


def test_a_window_starts_where_the_one_before_it_ended() -> None:
    found = due(schedule(catchUp="all"), at("2026-05-01T15:00"))

    windows = [(each.window_start, each.slot_at) for each in found.occurrences]
    assert windows == [
        (at("2026-05-01T12:00"), at("2026-05-01T13:00")),
        (at("2026-05-01T13:00"), at("2026-05-01T14:00")),
        (at("2026-05-01T14:00"), at("2026-05-01T15:00")),
    ]


def test_a_start_window_in_the_past_is_filled_from_its_first_instant() -> None:
    one = schedule(catchUp="all", startWindow="2026-05-01T10:00:00Z")

    assert slots(due(one, START)) == ["01T10:00", "01T11:00", "01T12:00"]


def test_nothing_fires_after_the_end_window() -> None:
    one = schedule(catchUp="all", endWindow="2026-05-01T14:00:00Z")

    found = due(one, at("2026-05-02T00:00"))

    assert slots(found) == ["01T13:00", "01T14:00"]
    assert found.next_fire_at is None
    assert due(keep(one, found), at("2026-05-03T00:00")) == Due((), found.cursor, None)


def test_an_inactive_schedule_fires_nothing() -> None:
    one = schedule(isActive=False)

    assert due(one, at("2027-01-01T00:00")) == Due((), None, None)
    assert next_fire_at(one) is None


def test_years_of_missed_minutes_are_looked_through_quickly() -> None:
    one = schedule("* * * * *", catchUp="last")

    found = due(one, START.replace(year=2036))

    assert slots(found) == ["01T12:00"]


def test_true_and_false_are_understood_as_all_and_last() -> None:
    assert schedule(catchUp=True).spec.catch_up == "all"
    assert schedule(catchUp=False).spec.catch_up == "last"


def test_the_run_is_told_what_fired_it_and_parameters_may_use_it() -> None:
    parameters: JsonObject = {
        "from": "{{ schedule.window.start }}",
        "to": ["{{ trigger.schedule.window.end }}"],
        "text": "slot {{ schedule.occurrence }}",
        "unknown": "{{ schedule.nothing }}",
        "other": "{{ parameters.x }}",
        "broken": "{{ a b }}",
        "n": 1,
    }
    (one,) = due(schedule(parameters=parameters), at("2026-05-01T13:00")).occurrences

    assert one.trigger == {
        "type": "schedule",
        "schedule": {
            "id": "s1",
            "name": "hourly",
            "cron": "0 * * * *",
            "timezone": "UTC",
            "occurrence": "2026-05-01T13:00:00.000Z",
            "window": {"start": "2026-05-01T12:00:00.000Z", "end": "2026-05-01T13:00:00.000Z"},
            "catchUp": "last",
        },
    }
    assert one.parameters == {
        "from": "2026-05-01T12:00:00.000Z",
        "to": ["2026-05-01T13:00:00.000Z"],
        "text": "slot 2026-05-01T13:00:00.000Z",
        "unknown": "{{ schedule.nothing }}",
        "other": "{{ parameters.x }}",
        "broken": "{{ a b }}",
        "n": 1,
    }


def test_a_fixed_local_time_keeps_its_hour_when_the_clocks_change() -> None:
    assert local("0 9 * * *", BERLIN, "2026-03-28T00:00", 3) == [
        "28 09:00+0100", "29 09:00+0200", "30 09:00+0200",
    ]  # fmt: skip


def test_a_local_time_that_is_skipped_fires_at_the_next_one_that_exists() -> None:
    assert local("30 2 * * *", BERLIN, "2026-03-28T12:00", 2) == ["29 03:00+0200", "30 02:30+0200"]


def test_several_skipped_times_fire_once() -> None:
    assert local("0,15,30 2,3 * * *", BERLIN, "2026-03-28T12:00", 4) == [
        "29 03:00+0200", "29 03:15+0200", "29 03:30+0200", "30 02:00+0200",
    ]  # fmt: skip


def test_a_local_time_that_comes_twice_fires_the_first_time_only() -> None:
    assert local("30 2 * * *", BERLIN, "2026-10-24T12:00", 2) == ["25 02:30+0200", "26 02:30+0100"]


def test_a_scheduler_that_starts_in_the_hour_that_comes_twice_does_not_fire_it_again() -> None:
    assert local("30 2 * * *", BERLIN, "2026-10-25T01:10", 1) == ["26 02:30+0100"]


def test_every_hour_means_every_real_hour_when_the_clocks_change() -> None:
    fall = list(islice(instants("0 * * * *", BERLIN, at("2026-10-24T22:30")), 5))
    spring = list(islice(instants("0 * * * *", BERLIN, at("2026-03-28T22:30")), 5))

    for hours in (fall, spring):
        assert {b - a for a, b in pairwise(hours)} == {timedelta(hours=1)}


CRONS = ["*/20 * * * *", "30 2 * * *", "0,30 1-3 * * *", "15 */2 * * *", "0 2 * * SUN", "5 0 L * *"]
ZONES = ["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(CRONS),
    st.sampled_from(ZONES),
    st.sampled_from(
        ["2026-03-07", "2026-03-28", "2026-04-04", "2026-10-03", "2026-10-24", "2026-10-31"]
    ),
    st.integers(0, 60 * 48),
)
def test_whatever_instant_one_starts_from_the_slots_after_it_are_the_same(
    cron: str, zone: str, day: str, minutes: int
) -> None:
    start = at(f"{day}T00:00")
    middle, end = start + timedelta(minutes=minutes), start + timedelta(days=3)

    whole = instants_until(cron, zone, start, end)

    assert whole == sorted(set(whole))
    assert instants_until(cron, zone, middle, end) == [each for each in whole if each > middle]
    until_middle = [each for each in whole if each <= middle]
    assert last_instant(cron, zone, middle, after=start) == (until_middle or [None])[-1]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(CRONS),
    st.sampled_from(ZONES),
    st.lists(st.integers(0, 900), min_size=1, max_size=12),
)
def test_catching_up_all_settles_every_slot_once_whenever_it_is_asked(
    cron: str, zone: str, pauses: list[int]
) -> None:
    one, now, fired = schedule(cron, timezone=zone, catchUp="all"), START, []
    for pause in pauses:
        now += timedelta(minutes=pause)
        while (found := due(one, now)).occurrences:
            fired += [each.slot_at for each in found.occurrences]
            one = keep(one, found)

    assert fired == instants_until(cron, zone, START, now)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"cron": "* * * *"}, "/cron"),
        ({"cron": "* * * * * *"}, "/cron"),
        ({"cron": "61 * * * *"}, "/cron"),
        ({"cron": "0 0 31 2 *"}, "/cron"),
        ({"cron": "hello"}, "/cron"),
        ({"cron": ""}, "/cron"),
        ({"cron": None}, "/cron"),
        ({"timezone": "Mars/Olympus"}, "/timezone"),
        ({"timezone": "../../etc/passwd"}, "/timezone"),
        ({"timezone": "/etc/passwd"}, "/timezone"),
        ({"timezone": "Europe"}, "/timezone"),
        ({"timezone": "\x00"}, "/timezone"),
        ({"timezone": ""}, "/timezone"),
        ({"catchUp": "some"}, "/catchUp"),
        ({"catchUp": []}, "/catchUp"),
        ({"startWindow": "yesterday"}, "/startWindow"),
        (
            {"startWindow": "2026-05-02T00:00:00Z", "endWindow": "2026-05-01T00:00:00Z"},
            "/endWindow",
        ),
        ({"parameters": []}, "/parameters"),
        ({"name": ""}, "/name"),
        ({"extra": 1}, "/extra"),
    ],
)
def test_a_schedule_that_means_nothing_is_refused_with_a_pointer(
    change: JsonObject, pointer: str
) -> None:
    with pytest.raises(ScheduleInvalid) as refused:
        schedule(**{"cron": "0 * * * *", **change})  # type: ignore[arg-type]

    assert [fault.pointer for fault in refused.value.faults] == [pointer]


def test_a_schedule_is_written_back_as_it_was_read() -> None:
    said: JsonObject = {"name": "n", "cron": "0 9 * * MON", "timezone": BERLIN, "catchUp": "none"}

    wire = read_schedule(said).wire()

    assert wire == {**said, "parameters": {}, "isActive": True}
    assert read_schedule(wire).wire() == wire
