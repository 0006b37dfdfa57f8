"""No body, header or parameter makes the API fail: 4xx with a code and a remedy, never a 5xx."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.api.support import ADMIN, Server, event, status_line

_RNG = random.Random(7)
GOOD = json.dumps(event(id="x")).encode()


def mutated(count: int) -> list[bytes]:
    """Good bodies with bytes changed, dropped, doubled and swapped."""
    found = []
    for _ in range(count):
        body = bytearray(_RNG.choice((GOOD, b"[" + GOOD + b"]", b'{"events":[' + GOOD + b"]}")))
        for _ in range(_RNG.randrange(1, 4)):
            at = _RNG.randrange(len(body))
            act = _RNG.randrange(4)
            if act == 0:
                body[at] = _RNG.randrange(256)
            elif act == 1:
                del body[at : at + _RNG.randrange(1, 20)]
            elif act == 2:
                body[at:at] = body[at : at + _RNG.randrange(1, 20)]
            else:
                body[at:at] = _RNG.choice((b"\x00", b"\\u0000", b"\\ud800", b"1e999", b"[[[", b'"'))
            body = body or bytearray(b" ")
        found.append(bytes(body))
    return found


WRITTEN = [
    b"", b" ", b"\x00", b"\xff\xfe", b"[", b"]", b"{", b"}", b'"', b"nul", b"null", b"true", b"0",
    b"-", b"1e400", b"-0", b"[]", b"[[]]", b"[null]", b"[1,2,3]", b'{"events":null}', b"{}" * 100,
    b'{"events":[[]]}', b"[" * 100_000, b'{"a":' * 50_000, b"1" * 100_000, b'"' + b"\\" * 99_999,
    b'{"type":"' + b"a." * 100_000 + b'"}', b"[" + b"{}," * 4_000 + b"{}]", b"\xed\xa0\x80",
    b'{"__proto__":{},"constructor":1}', b'{"type":{"$ne":null}}', b"<?xml version='1.0'?><a/>",
    b'{"id":"\'; DROP TABLE workflow_events; --","type":"a.b","source":"c.d"}',
    b'{"type":"../../etc/passwd","source":"..\\\\..\\\\x"}', b'{"type":"a.b\\u202e","source":"c"}',
    b'{"occurredAt":"9999-12-31T23:59:60+23:59","type":"a.b","source":"c.d"}',
    b'{"ttl":9223372036854775807,"type":"metastore.record.updated","source":"c.d"}',
]  # fmt: skip


@pytest.mark.parametrize("body", [*WRITTEN, *mutated(300)])
def test_a_hostile_body_is_answered_and_never_breaks_anything(api: Server, body: bytes) -> None:
    answered = api.admin.post(
        "/v1/events", content=body, headers={"Content-Type": "application/json"}
    )

    assert answered.status_code < 500, answered.text
    if answered.status_code >= 400:
        problem = answered.json()
        assert problem["code"]
        assert problem["remedy"]


@pytest.mark.parametrize("body", [*WRITTEN, *mutated(40)])
@pytest.mark.parametrize(
    "path", ["/admin/event-schemas", "/admin/dead-letters/redrive", "/admin/tokens"]
)
def test_a_hostile_admin_body_is_refused(api: Server, path: str, body: bytes) -> None:
    answered = api.admin.post(path, content=body, headers={"Content-Type": "application/json"})

    assert 400 <= answered.status_code < 500


def test_the_server_is_as_healthy_as_before(api: Server) -> None:
    assert api.stranger.get("/healthz").status_code == 200
    assert api.admin.post("/v1/events", json=event()).status_code == 202
    assert api.admin.get("/admin/ledger").json()["data"]["unexplained"] == 0


@pytest.mark.parametrize(
    "path",
    [
        "/admin/events", "/admin/events/facets", "/admin/events/histogram", "/admin/dead-letters",
        "/admin/dead-letters/groups", "/admin/event-schemas", "/v1/events/stream",
    ],
)  # fmt: skip
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    pairs=st.lists(
        st.tuples(
            st.sampled_from(
                ["type", "source", "from", "to", "jsonPath", "severity", "limit", "cursor", "tag.x"]
            )
            | st.text(max_size=10),
            st.text(max_size=30) | st.sampled_from(["", "0", "-1", "1e9", "$", "$.**", "%"]),
        ),
        max_size=4,
    )
)
def test_no_parameters_break_a_question(
    api: Server, path: str, pairs: list[tuple[str, str]]
) -> None:
    with api.admin.stream("GET", path, params=pairs) as answered:
        assert answered.status_code < 500


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Type: \xff\xfe", b"Authorization: Bearer \xff\xfe" + b"a" * 30,
        b"Idempotency-Key: \xff", b"ce-specversion: \xff", b"ce-id: %ff%fe", b"ce-: x",
        b"X-Request-Id: \xff\xff\xff\xff\xff\xff\xff\xff", b"Origin: \xff", b"Content-Length: -1",
        b"Content-Length: 1, 1", b"Transfer-Encoding: gzip, chunked", b"Expect: 100-continue",
        b"Content-Type: application/json; charset=\xff", b"Cookie: " + b"a" * 4_000,
    ],
)  # fmt: skip
def test_no_header_breaks_a_request(api: Server, header: bytes) -> None:
    request = (
        b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %b\r\n"
        b"Connection: close\r\nce-specversion: 1.0\r\n%b\r\nContent-Length: 2\r\n\r\n{}"
    )

    heard = api.raw(request % (api.port, ADMIN.encode(), header))

    assert heard == b"" or status_line(heard) < 500


@pytest.mark.parametrize("depth", [31, 32, 33, 100, 10_000])
def test_a_depth_bomb_costs_a_moment_at_every_door(api: Server, depth: int) -> None:
    bomb: Any = b'{"eventType":"a.b","schema":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"
    for path in ("/admin/event-schemas", "/v1/events"):
        answered = api.admin.post(path, content=bomb, headers={"Content-Type": "application/json"})
        assert answered.status_code < 500
