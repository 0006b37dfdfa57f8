"""Receive a signed webhook: check who sent it, and take each message once.

    python examples/webhook_receiver.py

It starts a receiver, sends it one message twice and a forged one, and stops. In real life the
sender is a workflow step of the type `webhook`, and the secret comes from your vault.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx

from penstock.workflows.launch.errors import SignatureInvalid
from penstock.workflows.launch.signature import signed_headers, verify

SECRETS = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]


class Receiver(BaseHTTPRequestHandler):
    taken: set[str] = set()  # noqa: RUF012  a table with a unique key, in real life

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            message = verify(dict(self.headers), body, SECRETS, now=datetime.now(UTC))
        except SignatureInvalid as error:
            print(f"refused   {error.detail}")
            self.answer(401)
            return
        print(f"{'repeated' if message in self.taken else 'taken':<9} {message} {body.decode()}")
        self.taken.add(message)
        self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def main() -> None:
    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url, body = f"http://127.0.0.1:{server.server_port}/", b'{"rows":24}'
        headers = signed_headers("run-42-step-3", datetime.now(UTC), body, SECRETS)
        for content in (body, body, b'{"rows":25}'):
            httpx.post(url, content=content, headers=headers, trust_env=False)
        server.shutdown()


if __name__ == "__main__":
    main()
