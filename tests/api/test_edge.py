"""What stands before every request checks size, kind, name and origin, and guards what goes out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

import pytest
from tests.api.support import (
    ADMIN,
    Server,
    database_of,
    event,
    opened,
    running,
    settings_for,
    status_line,
)

from penstock.base.on_postgres import EmbeddedPostgres

BODY_MAX = 20_000
GOOD = json.dumps(event()).encode()


@pytest.fixture(scope="module")
def api(
    server: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server with a small limit and one name and one origin of its own."""
    with database_of(server, template) as database:
        settings = settings_for(
            database, tmp_path_factory.mktemp("edge"), body_bytes_max=BODY_MAX,
            allowed_hosts="events.example.com", allowed_origins="https://ops.example.com",
        )  # fmt: skip
        with opened(settings) as house, running(house, database) as found:
            yield found


def post(api: Server, body: bytes, *headers: str, host: str | None = None) -> bytes:
    """A request written by hand, without Content-Length unless given."""
    lines = [
        "POST /v1/events HTTP/1.1",
        *([] if host == "" else [f"Host: {host or f'127.0.0.1:{api.port}'}"]),
        f"Authorization: Bearer {ADMIN}",
        "Connection: close",
        *headers,
    ]
    return api.raw("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)


def sized(body: bytes) -> str:
    return f"Content-Length: {len(body)}"


JSON = "Content-Type: application/json"


# Sizes.


def test_a_body_over_the_limit_is_413_before_it_is_read(api: Server) -> None:
    heard = post(api, b"", JSON, f"Content-Length: {10**12}")

    assert status_line(heard) == 413
    assert b'"code":"too_large"' in heard


@pytest.mark.parametrize("length", ["9" * 30, "9" * 5_000])
def test_a_length_that_no_number_holds_is_refused(api: Server, length: str) -> None:
    assert status_line(post(api, b"", JSON, f"Content-Length: {length}")) in (400, 413)


def test_a_chunked_body_is_cut_at_the_limit(api: Server) -> None:
    chunk = b"%x\r\n" % 1000 + b" " * 1000 + b"\r\n"

    heard = post(api, chunk * 100, JSON, "Transfer-Encoding: chunked")

    assert status_line(heard) == 413


def test_a_chunked_body_within_the_limit_is_taken(api: Server) -> None:
    half = len(GOOD) // 2
    body = (
        b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in (GOOD[:half], GOOD[half:])) + b"0\r\n\r\n"
    )

    assert status_line(post(api, body, JSON, "Transfer-Encoding: chunked")) == 202


def test_a_packed_body_is_415_and_never_unpacked(api: Server) -> None:
    bomb = gzip.compress(b" " * 10_000_000)

    heard = post(api, bomb, JSON, "Content-Encoding: gzip", sized(bomb))

    assert status_line(heard) == 415
    assert b"accept-encoding: identity" in heard.lower()


def test_the_limit_holds_for_every_route_that_takes_a_body(api: Server) -> None:
    for path in ("/admin/event-schemas", "/admin/dead-letters/redrive", "/admin/tokens"):
        answered = api.admin.post(
            path, content=b" " * (BODY_MAX + 1), headers={"Content-Type": "application/json"}
        )
        assert answered.status_code == 413


def test_a_client_that_leaves_in_the_middle_harms_nobody(api: Server) -> None:
    import socket

    for _ in range(20):
        with socket.create_connection(("127.0.0.1", api.port)) as bare:
            request = f"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{api.port}\r\n"
            request += f"Authorization: Bearer {ADMIN}\r\n{JSON}\r\nContent-Length: 500\r\n\r\n{{"
            bare.sendall(request.encode())

    assert api.stranger.get("/healthz").status_code == 200


# Kinds.


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
        "text/json", "application/jsonp", "application/json2", "", "*/*",
        "application/octet-stream",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "path",
    ["/v1/events", "/admin/event-schemas", "/admin/dead-letters/redrive", "/admin/tokens"],
)
def test_a_body_that_is_not_called_json_is_415(api: Server, path: str, kind: str) -> None:
    answered = api.admin.post(path, content=GOOD, headers={"Content-Type": kind} if kind else {})

    assert answered.status_code == 415
    assert answered.json()["code"] == "media_type_unsupported"
    assert "application/json" in answered.headers["accept"]


@pytest.mark.parametrize("kind", ["APPLICATION/JSON", "application/json;charset=utf-8"])
def test_json_is_recognised_however_it_is_written(api: Server, kind: str) -> None:
    answered = api.admin.post("/v1/events", content=GOOD, headers={"Content-Type": kind})

    assert answered.status_code == 202


# Names and origins.


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}",
        "localhost.evil:{port}", "[::]:{port}",
        "127.0.0.1:1", "", "127.0.0.1:{port}@evil.example", "evil.example#127.0.0.1:{port}",
        "events.example.com.evil.example", "127.0.0.1:{port}/admin", "0.0.0.0:{port}",
    ],
)  # fmt: skip
def test_a_host_that_is_not_ours_is_refused(api: Server, host: str) -> None:
    heard = post(api, GOOD, JSON, sized(GOOD), host=host.format(port=api.port))

    assert status_line(heard) in (400, 403)
    assert b" 202 " not in heard


@pytest.mark.parametrize(
    "host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "events.example.com"]
)
def test_a_host_that_is_ours_or_listed_is_answered(api: Server, host: str) -> None:
    heard = post(api, GOOD, JSON, sized(GOOD), host=host.format(port=api.port))

    assert status_line(heard) == 202


def test_a_foreign_host_is_refused_also_where_no_token_is_needed(api: Server) -> None:
    for path in ("/", "/healthz", "/readyz", "/nowhere"):
        answered = api.stranger.get(path, headers={"Host": "rebound.example"})
        assert (answered.status_code, answered.json()["code"]) == (403, "host_refused")


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example", "null", "http://evil.example:8700", "file://", "http://127.0.0.1:1",
        "http://127.0.0.1.evil.example", "https://ops.example.com.evil.example", "chrome-extension://x",
        "http://ops.example.com",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/events", "/admin/tokens", "/v1/ws-tickets"])
def test_a_page_of_another_origin_changes_nothing_even_with_a_token(
    api: Server, path: str, origin: str
) -> None:
    headers = {"Content-Type": "application/json", "Origin": origin}

    answered = api.admin.post(path, content=GOOD, headers=headers)

    assert (answered.status_code, answered.json()["code"]) == (403, "origin_refused")


@pytest.mark.parametrize("origin", ["http://127.0.0.1:{port}", "https://ops.example.com"])
def test_a_page_of_our_own_or_a_listed_origin_may_publish(api: Server, origin: str) -> None:
    headers = {"Content-Type": "application/json", "Origin": origin.format(port=api.port)}

    answered = api.admin.post("/v1/events", content=GOOD, headers=headers)

    assert answered.status_code == 202
    assert "access-control-allow-origin" not in answered.headers


# What goes out.


@pytest.mark.parametrize("path", ["/", "/healthz", "/admin/events", "/nowhere", "/openapi.json"])
def test_every_answer_has_the_headers_that_protect_a_browser(api: Server, path: str) -> None:
    for client in (api.stranger, api.admin):
        headers = client.get(path).headers

        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "server" not in headers


def test_the_front_page_loads_nothing_and_runs_nothing(api: Server) -> None:
    answered = api.stranger.get("/")

    assert answered.headers["content-type"].startswith("text/html")
    page = answered.text
    for word in ("<script", "javascript:", "src=", "<link", "@import", "url(", "onload", "http://"):
        assert word not in page.replace("http://127.0.0.1:8700", "")
    for word in ("Penstock", "curl", "/v1/events", "/openapi.json", "docs/events.md"):
        assert word in page


def test_a_request_keeps_the_id_it_came_with_if_it_is_harmless(api: Server) -> None:
    given = {"X-Request-Id": "req-0123456789"}

    assert api.stranger.get("/healthz", headers=given).headers["x-request-id"] == "req-0123456789"
    for bad in ("short", "x" * 65, "white space in it", 'quo"te-in-it'):
        answered = api.stranger.get("/healthz", headers={"X-Request-Id": bad})
        assert answered.headers["x-request-id"] != bad


def test_a_problem_names_the_request_it_is_about(api: Server) -> None:
    answered = api.stranger.get("/nowhere")

    request_id = answered.headers["x-request-id"]
    assert answered.json()["instance"] == f"urn:penstock:request:{request_id}"
