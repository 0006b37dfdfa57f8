"""jsonPath filters run in PostgreSQL, as a reader, on one tenant, and within the time limit."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.store.support import KEY, load, stored

from penstock.base.errors import QueryInvalid, QueryTooSlow
from penstock.base.on_postgres import open_pool
from penstock.store.on_postgres import EventReader
from penstock.store.query import EventQuery, read_query
from penstock.store.walk import on_postgres as walking

PAYLOADS = {
    1: {"assetId": "asset-7", "count": 3},
    2: {"assetId": "asset-8", "count": 12, "ready": False},
    3: {"assetId": "asset-9", "payload": {"assetId": "inner-1", "count": 99}},
    4: {"items": [{"price": 5}, {"price": 50}], "user-id": "u1", "at": "2026-01-01T00:00:00Z"},
    5: "asset-7",
    6: [1, 2, 3],
    7: {},
    8: None,
}


@pytest.fixture(scope="module")
def shelf(shared_database: str, shared_reader: EventReader) -> EventReader:
    """A reader of one event per payload above, and of another tenant's that all paths match."""
    load(shared_database, [stored(n, payload=payload) for n, payload in PAYLOADS.items()])
    load(shared_database, [stored(9, payload=PAYLOADS[1], tenant_id="other")])
    return shared_reader


def found(reader: EventReader, path: str, tenant_id: str = "default") -> list[int]:
    query, limit, _ = read_query([("jsonPath", path)], tenant_id=tenant_id)
    return sorted(event.position for event in reader.page(query, limit=limit).events)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        # a path asks whether it finds anything, be it false
        ("$.assetId", [1, 2, 3]),
        ("$.ready", [2]),
        ('$.assetId ? (@ == "asset-7")', [1]),
        ("$.items[*] ? (@.price > 10)", [4]),
        ('$."user-id"', [4]),
        ("strict $.items[1].price", [4]),
        ("$[*] ? (@ == 2)", [6]),
        # a predicate asks whether it is true: "false" is not a find
        ('$.assetId == "asset-7"', [1]),
        ('$.assetId == "nowhere"', []),
        ("$.count > 5", [2]),
        ("$.count > 5 && $.ready == false", [2]),
        ('$.assetId starts with "asset-"', [1, 2, 3]),
        ('$.assetId like_regex "-[89]$"', [2, 3]),
        ("exists($.items)", [4]),
        ('$ == "asset-7"', [5]),
        ('$.at.datetime() > "2025-12-31T23:00:00+00:00".datetime()', [4]),
        # the same, seen from the envelope
        ("$.payload.assetId", [1, 2, 3]),
        ('$.payload.assetId == "asset-9"', [3]),
        ("$.payload.count > 5", [2, 3]),
        ('$.payload == "asset-7"', [5]),
        # a payload that has a member `payload` is found by either reading
        ('$.payload.assetId == "inner-1"', [3]),
        ('$.payload.payload.assetId == "inner-1"', [3]),
        # … and only such a one: a negation is not true of everything
        ('!($.payload.assetId == "asset-7")', [2, 3, 4, 5, 6, 7, 8]),
        ("!exists($.payload.assetId)", [4, 5, 6, 7, 8]),
        ('!($.assetId == "asset-7")', [2, 3, 4, 5, 6, 7, 8]),
        # errors in a row are no match, not an error of the query
        ("$.assetId.bigint() > 1", []),
        ("$.count / 0 > 1", []),
        ("strict $.nowhere", []),
    ],
)
def test_a_path_finds_what_it_says(shelf: EventReader, path: str, expected: list[int]) -> None:
    assert found(shelf, path) == expected


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("$.", "syntax error"),
        ("$.a ==", "syntax error"),
        ("$.a ? (@ == 'x')", "syntax error"),
        ("$.a-b-", "syntax error"),
        ("$[", "syntax error"),
        ("$ /* open", "end of comment"),
        ('$.a like_regex "("', "invalid regular expression"),
        ('$.a like_regex "((((a{1,255}){1,255}){1,255}){1,255})"', "too complex"),
        ('$.a like_regex "a" flag "z"', "flag"),
        ("$.a == @", "not allowed in root"),
        ("$." + "a." * 240 + "(", "syntax error"),
        ("(" * 400 + "$", "syntax error"),
        ("$.a.datetime(1, 2)", "syntax error"),
        ('$."\\u0000"', "."),
        ('$."\\ud800"', "."),
    ],
)
def test_an_invalid_path_is_refused_even_when_there_is_nothing_to_search(
    shelf: EventReader, path: str, says: str
) -> None:
    with pytest.raises(QueryInvalid, match=says) as refusal:
        found(shelf, path, tenant_id="nobody")

    assert refusal.value.parameter == "jsonPath"
    assert refusal.value.code == "query_invalid"


INJECTIONS = [
    "$.a'; DROP TABLE workflow_events; --",
    "$.a') OR true; --",
    "$.a'::jsonpath OR true --",
    "$') OR (SELECT true) OR jsonb_path_exists(e.payload, '$",
    "%(tenant)s $",
    "$.%s",
    "$.{walk}",
    "$ {filters}",
    "$1",
    "$$ SELECT 1 $$",
    '$."\'; RESET ROLE; --"',
    "$\\'; SET penstock.tenant = 'other'; --",
    "$.a; SELECT set_config('penstock.tenant', 'other', false)",
    "$.a\u2019 OR 1=1",
    "$.a' UNION SELECT * FROM access_tokens --",
]


@pytest.mark.parametrize("path", INJECTIONS)
def test_text_that_looks_like_sql_stays_text(shelf: EventReader, path: str) -> None:
    with suppress(QueryInvalid):
        assert found(shelf, path) == []

    assert found(shelf, "$.assetId") == [1, 2, 3]


SLOW = {
    "over many rows": ('$[*] ? (@ like_regex "(.*a){9}b$")', [["ab" * 30 + "a"] * 400] * 200),
    "over one array, squared": ('$[*] ? ($[*] == "x")', [list(range(6_000))]),
    "over nothing, 8^12 times": ("$" + "[0,0,0,0,0,0,0,0]" * 12 + ' == "x"', [1]),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_path_that_runs_long_is_stopped_at_the_time_limit(database: str, name: str) -> None:
    path, payloads = SLOW[name]
    load(database, [stored(n, payload=payload) for n, payload in enumerate(payloads, 1)])
    with open_pool(database, "penstock_reader", size_max=1, timeout_ms=80) as pool:
        reader = EventReader(pool, cursor_key=KEY)

        with pytest.raises(QueryTooSlow):
            found(reader, path)

        # The connection went back healthy, and a plain question gets its answer.
        assert reader.page(EventQuery("default"), limit=1).events


def test_searches_that_run_long_leave_room_for_other_readers(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "_PATH_WAIT_S", 0.05)
    load(database, [stored(1)])
    with open_pool(database, "penstock_reader", size_max=2, timeout_ms=2_000) as pool:
        reader = EventReader(pool, cursor_key=KEY)
        turns = reader._reading._paths
        turns.acquire()
        turns.acquire()

        assert len(reader.page(EventQuery("default")).events) == 1
        with pytest.raises(QueryTooSlow, match="other jsonPath searches"):
            found(reader, "$")
        turns.release()
        assert found(reader, "$") == [1]
        turns.release()
