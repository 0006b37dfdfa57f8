"""Requests reach the address that was checked and no other, and end in time whatever comes."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.workflows.launch.support import Names, Receiver, outbound, receiver, wait_until
from tests.workflows.launch.test_guard import FORMS, PRIVATE_4, PRIVATE_6

from penstock.workflows.launch.circuit import Circuits
from penstock.workflows.launch.errors import OutboundRefused, Unreachable
from penstock.workflows.launch.over_http import Outbound
from penstock.workflows.launch.request import ANSWER_BYTES_MAX, Reply, Request

HERE = "127.0.0.1/32"


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def get(http: Outbound, url: str, *, total_s: float = 5.0, call_id: str = "call") -> Reply:
    return http.send(Request("GET", url), call_id=call_id, total_s=total_s)


@contextmanager
def listening(behave: object) -> Iterator[int]:
    """A server that does to its connections whatever `behave` does."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=behave, args=(connection,), daemon=True).start()  # type: ignore[arg-type]

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def test_a_listed_address_is_reached(there: Receiver) -> None:
    there.says(201, b'{"a": 1}', x_said="yes")

    reply = outbound(HERE).send(
        Request("POST", f"{there.url}/in?q=1", {"x-mine": "1"}, b"body"), call_id="call"
    )

    assert (reply.status, reply.json(), reply.headers["x-said"]) == (201, {"a": 1}, "yes")
    (heard,) = there.heard
    assert (heard.method, heard.path, heard.body) == ("POST", "/in?q=1", b"body")
    assert heard.headers["x-mine"] == "1"


def test_a_private_address_is_not_even_connected_to(there: Receiver) -> None:
    with pytest.raises(OutboundRefused):
        get(outbound(), there.url)

    assert there.connections == 0


def test_a_private_address_behind_a_name_is_not_connected_to(there: Receiver) -> None:
    names = Names(["127.0.0.1"])

    with pytest.raises(OutboundRefused, match=r"receiver\.example to have public"):
        get(outbound(names=names), f"http://receiver.example:{there.port}/")

    assert there.connections == 0


def test_a_private_address_among_public_ones_is_not_connected_to(there: Receiver) -> None:
    names = Names(["8.8.8.8", "127.0.0.1"])

    with pytest.raises(OutboundRefused):
        get(outbound(names=names), f"http://receiver.example:{there.port}/")

    assert there.connections == 0


def test_the_systems_own_names_for_this_machine_are_refused(there: Receiver) -> None:
    with pytest.raises(OutboundRefused):
        get(outbound(), f"http://localhost:{there.port}/")

    assert there.connections == 0


def test_no_form_of_a_private_address_by_any_trick_makes_a_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The forms of test_guard.py: written out, behind a name, beside a public one, rebound."""
    connected: list[object] = []

    def refuse(address: object, *_args: object, **_named: object) -> None:
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", refuse)
    for form in FORMS:
        with pytest.raises(OutboundRefused):
            get(outbound(names=Names(["127.0.0.1"])), f"http://{form}/")
    for private in (*PRIVATE_4, *PRIVATE_6):
        for answers in ([[private]], [["8.8.8.8", private]], [[private], ["8.8.8.8"]]):
            with pytest.raises(OutboundRefused):
                get(outbound(names=Names(*answers)), "http://receiver.example/")
        names = Names(["8.8.8.8"], [private])
        with pytest.raises(Unreachable):
            get(outbound(names=names), "http://receiver.example/")

    assert {*connected} == {("8.8.8.8", 80)}
    assert len(connected) == len(PRIVATE_4) + len(PRIVATE_6)


def test_a_name_that_changes_its_address_leads_nowhere_else() -> None:
    with receiver("127.0.0.2") as good, receiver("127.0.0.1", good.port) as inside:
        names = Names(["127.0.0.2"], ["127.0.0.1"])
        http = outbound("127.0.0.2/32", names=names)

        get(http, f"http://receiver.example:{good.port}/")
        with pytest.raises(OutboundRefused):
            get(http, f"http://receiver.example:{good.port}/")

        assert len(names.asked) == 2, "once for each request, never between check and connect"
        assert (good.connections, inside.connections) == (1, 0)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_a_private_address_is_not_followed(status: int) -> None:
    with receiver("127.0.0.2") as good, receiver("127.0.0.1") as inside:
        good.says(status, location=f"{inside.url}/secret")

        reply = get(outbound("127.0.0.2/32"), good.url)

        assert reply.status == status
        assert inside.connections == 0


def test_our_own_port_is_refused_at_a_listed_address(there: Receiver) -> None:
    with pytest.raises(OutboundRefused, match="Penstock's own"):
        get(outbound(HERE, blocked_ports=[there.port]), there.url)

    assert there.connections == 0


def test_no_proxy_of_the_environment_is_asked(
    there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")

    assert get(outbound(HERE), there.url).status == 200


def test_the_host_header_is_the_name_and_not_the_address(there: Receiver) -> None:
    get(outbound(HERE, names=Names(["127.0.0.1"])), f"http://receiver.example:{there.port}/")

    assert there.heard[0].headers["host"] == f"receiver.example:{there.port}"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "receiver.example")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("receiver.example")]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    file.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + made.public_bytes(pem)
    )
    return file


@pytest.fixture
def secure(certificate: Path) -> Iterator[Receiver]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with receiver(tls=tls) as made:
        yield made


def test_a_pinned_connection_still_proves_the_name(secure: Receiver, certificate: Path) -> None:
    trust = ssl.create_default_context(cafile=str(certificate))
    http = outbound(HERE, names=Names(["127.0.0.1"]), tls=trust)

    assert get(http, f"https://receiver.example:{secure.port}/").status == 200
    assert secure.server_names == ["receiver.example"]


def test_another_name_with_the_same_certificate_is_not_trusted(
    secure: Receiver, certificate: Path
) -> None:
    trust = ssl.create_default_context(cafile=str(certificate))
    http = outbound(HERE, names=Names(["127.0.0.1"]), tls=trust)

    with pytest.raises(Unreachable, match="certificate"):
        get(http, f"https://other.example:{secure.port}/")


def test_a_receiver_that_never_answers_is_left_in_time() -> None:
    with listening(lambda connection: connection.recv(65_536)) as port:
        began = time.monotonic()
        with pytest.raises(Unreachable, match=r"Timeout"):
            get(outbound(HERE), f"http://127.0.0.1:{port}/", total_s=0.3)

        assert time.monotonic() - began < 2


def test_a_receiver_that_drips_is_left_in_time() -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            try:
                connection.sendall(b"x: y\r\n")
            except OSError:
                return
            threading.Event().wait(0.02)

    with listening(drip) as port:
        began = time.monotonic()
        with pytest.raises(Unreachable):
            get(outbound(HERE), f"http://127.0.0.1:{port}/", total_s=0.3)

        assert time.monotonic() - began < 2


def test_a_name_server_that_never_answers_is_left_in_time() -> None:
    def never(_host: str, _port: int) -> list[object]:
        threading.Event().wait(30)
        return []

    began = time.monotonic()
    with pytest.raises(Unreachable, match="not resolved in time"):
        get(outbound(names=never), "http://receiver.example/", total_s=0.2)  # type: ignore[arg-type]

    assert time.monotonic() - began < 2


def test_a_reset_is_no_answer(there: Receiver) -> None:
    there.answer = lambda _heard: None

    with pytest.raises(Unreachable):
        get(outbound(HERE), there.url)


def test_an_answer_that_is_not_http_is_no_answer() -> None:
    def babble(connection: socket.socket) -> None:
        connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n" * 10)
        connection.close()

    with listening(babble) as port, pytest.raises(Unreachable):
        get(outbound(HERE), f"http://127.0.0.1:{port}/")


def test_nobody_there_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    with pytest.raises(Unreachable):
        get(outbound(HERE), f"http://127.0.0.1:{port}/")


def test_of_a_long_answer_only_the_beginning_is_heard(there: Receiver) -> None:
    there.says(200, b"x" * 10_000_000)

    reply = get(outbound(HERE), there.url)

    assert (len(reply.body), reply.is_cut) == (ANSWER_BYTES_MAX, True)


def test_a_head_without_end_is_no_answer() -> None:
    def boast(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
        try:
            while True:
                connection.sendall(b"y" * 65_536)
        except OSError:
            return

    with listening(boast) as port, pytest.raises(Unreachable):
        get(outbound(HERE), f"http://127.0.0.1:{port}/")


def test_early_hints_without_end_are_no_answer() -> None:
    def hint(connection: socket.socket) -> None:
        try:
            while True:
                connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)
        except OSError:
            return

    with listening(hint) as port, pytest.raises(Unreachable, match="too long"):
        get(outbound(HERE), f"http://127.0.0.1:{port}/", total_s=30)


def test_a_request_can_be_called_off() -> None:
    with listening(lambda connection: connection.recv(65_536) and None) as port:
        http = outbound(HERE)
        failures: list[Unreachable] = []

        def send() -> None:
            try:
                get(http, f"http://127.0.0.1:{port}/", total_s=30, call_id="mine")
            except Unreachable as error:
                failures.append(error)

        thread = threading.Thread(target=send)
        thread.start()
        wait_until(lambda: "mine" in http._lines and http._lines["mine"]._stream)
        http.cancel("another")
        http.cancel("mine")
        thread.join(5)

        assert not thread.is_alive()
        assert "canceled" in str(failures[0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("host", "inside"), ("Content-Length", "0"), ("transfer-encoding", "chunked")),
        *(("connection", "upgrade"), ("x y", "1"), ("x", "1\r\nhost: inside"), ("x", "ü")),
    ],
)
def test_headers_that_would_change_the_conversation_are_refused(
    there: Receiver, name: str, value: str
) -> None:
    with pytest.raises(OutboundRefused):
        outbound(HERE).send(Request("GET", there.url, {name: value}), call_id="call")

    assert there.connections == 0


def test_after_failures_in_a_row_a_receiver_is_spared(there: Receiver) -> None:
    http = outbound(HERE, circuits=Circuits(failures_max=3, rest_s=30))
    there.says(503)
    for _ in range(3):
        assert get(http, there.url).status == 503

    with pytest.raises(Unreachable, match="asked again in 30 s"):
        get(http, there.url)

    assert len(there.heard) == 3
