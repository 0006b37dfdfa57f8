"""Call a registered service: its address, the step's request, and the answer as the output.

    Service(base_url, headers) + {method, path, query, headers, body} ──▶ Request ──▶ Reply
    output: {"status": 200, "body": …}, without the body when the step does not capture it

The step says what comes after the base address and cannot climb out of it.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote, urlencode

from penstock.base.errors import NotInProfile
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.launch.credentials import Secrets, filled_headers
from penstock.workflows.launch.errors import OutboundRefused, SecretUnknown, Unreachable
from penstock.workflows.launch.request import (
    ANSWER_BYTES_MAX,
    Http,
    Reply,
    Request,
    outcome_from,
    outcome_of,
    part,
)
from penstock.workflows.launch.results import failed, succeeded
from penstock.workflows.port import Failed, Failure, Service, Services, StepCall, StepResult

TOTAL_S_MAX: Final = 60.0  # a worker's thread waits for it
_SAFE: Final = "/%:@!$&'()*+,;=~"
_DOTS: Final = re.compile(r"(?:^|/)\.{1,2}(?:/|$)")
_BODILESS: Final = frozenset({"GET", "HEAD"})


class ServiceCalls:
    """Runs steps of the kind `service`."""

    def __init__(self, http: Http, services: Services, secrets: Secrets) -> None:
        self._http = http
        self._services = services
        self._secrets = secrets

    def run(self, call: StepCall) -> StepResult:
        """Send the request and take the answer."""
        service = self._services.service(call.tenant_id, call.slug)
        if service is None:
            return service_unknown(call.slug)
        sick = _unhealthy(service, call.input)
        if sick is not None:
            return sick
        try:
            request = self._request(service, call)
            reply = self._http.send(
                request, call_id=call.job_run_id, total_s=min(call.timeout_s, TOTAL_S_MAX)
            )
        except (OutboundRefused, Unreachable) as error:
            return outcome_from(error, call)
        except SecretUnknown as error:
            return failed(Failure.INPUT_INVALID, error.detail, retryable=False)
        return _output(reply, call.input) if reply.is_ok else outcome_of(reply, call)

    def cancel(self, call_id: str) -> None:
        """Hang up."""
        self._http.cancel(call_id)

    def _request(self, service: Service, call: StepCall) -> Request:
        said = part(call.input, "request")
        method = str(said.get("method") or "POST").upper()
        headers = {
            "accept": "application/json",
            "idempotency-key": call.idempotency_key,
            **({"x-correlation-id": call.correlation_id} if call.correlation_id else {}),
            **filled_headers(service.headers, self._secrets, call.tenant_id),
            **filled_headers(part(said, "headers"), self._secrets, call.tenant_id),
        }
        body = b""
        if said.get("body") is not None and method not in _BODILESS:
            body = encode(said["body"])
            headers.setdefault("content-type", "application/json")
        url = join_url(service.base_url, str(said.get("path") or "/"), part(said, "query"))
        return Request(method, url, headers, body)


def service_unknown(slug: str) -> Failed:
    """The step names a service that nobody registered."""
    detail = f"expected a registered service named {slug}, found none"
    return failed(Failure.SERVICE_UNKNOWN, detail, retryable=False)


def join_url(base_url: str, path: str, query: JsonObject | None = None) -> str:
    """The address of a path below a service's base; OutboundRefused when it climbs out of it."""
    path, _, written = path.partition("?")
    if _DOTS.search(unquote(unquote(path))) or "\\" in unquote(path):
        raise OutboundRefused("expected a path without `.` and `..` segments, found one")
    pairs = [(name, _text(value)) for name, value in (query or {}).items() if value is not None]
    asked = "&".join(filter(None, (quote(written, safe=_SAFE + "?"), urlencode(pairs))))
    joined = f"{base_url.rstrip('/')}/{quote(path, safe=_SAFE).lstrip('/')}"
    return f"{joined}?{asked}" if asked else joined


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def _unhealthy(service: Service, said: JsonObject) -> Failed | None:
    if said.get("requireHealthy") is not True or service.status == "healthy":
        return None
    if service.status == "degraded" and said.get("allowDegraded") is not False:
        return None
    detail = f"expected the service {service.slug} to be healthy, found it {service.status}"
    return failed(Failure.SERVICE_UNHEALTHY, detail)


def _output(reply: Reply, said: JsonObject) -> StepResult:
    if said.get("captureResponse") is False:
        return succeeded({"status": reply.status})
    if reply.is_cut:
        detail = f"answer: expected at most {ANSWER_BYTES_MAX} bytes, found more"
        return failed(Failure.OUTPUT_INVALID, detail, retryable=False)
    body: JsonValue
    try:
        body = reply.json() if reply.body else None
    except NotInProfile:
        body = reply.body.decode(errors="replace").replace("\0", "\ufffd")
    return succeeded({"status": reply.status, "body": body})
