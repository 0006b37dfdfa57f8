"""Launch a run of a DAG in Airflow and follow it to its end, without ever launching it twice.

    POST dagRuns {dag_run_id: key} ── 200 | 409 ──▶ Waiting ── GET ── queued, running ──▶ Waiting
                                                                  └── success | failed ──▶ done

The run's id is the step's idempotency key, so a launch that was heard but not answered is found
again. A further attempt first looks at the runs of those before it and follows one that did not
fail; only then it launches a new one. A DAG run that goes on when the run of its step is over is
ended. Speaks the stable API of Airflow 3 (/api/v2), and of Airflow 2 when the service's metadata
says `{"apiPath": "/api/v1"}`.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from penstock.base.clock import Clock, SystemClock
from penstock.base.errors import NotInProfile
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject
from penstock.workflows.launch.credentials import Secrets, filled_headers
from penstock.workflows.launch.errors import OutboundRefused, SecretUnknown, Unreachable
from penstock.workflows.launch.request import (
    TOTAL_S,
    Http,
    Reply,
    Request,
    failure_of,
    outcome_from,
    outcome_of,
    part,
)
from penstock.workflows.launch.results import canceled, failed, succeeded, timed_out
from penstock.workflows.launch.service import join_url, service_unknown
from penstock.workflows.launch.webhook import is_over
from penstock.workflows.port import Failure, Service, Services, StepCall, StepResult, Waiting

API_PATH: Final = "/api/v2"
POLL_S: Final = 10
_RUN_ID: Final = re.compile(r"[A-Za-z0-9_:+-][A-Za-z0-9_.~:+-]{0,199}")
_MISSING, _CONFLICT = 404, 409
_OVER = frozenset({"success", "failed"})


class Airflow:
    """Runs steps of the kind `airflow`."""

    def __init__(
        self, http: Http, services: Services, secrets: Secrets, *, clock: Clock | None = None
    ) -> None:
        self._http = http
        self._services = services
        self._secrets = secrets
        self._clock = clock or SystemClock()

    def run(self, call: StepCall) -> StepResult:
        """Launch, or look how far the run is."""
        service = self._services.service(call.tenant_id, call.slug)
        if service is None:
            return service_unknown(call.slug)
        try:
            run = _followed(call)
            return self._look(service, call, run) if run else self._launch(service, call)
        except OutboundRefused as error:
            return outcome_from(error, call)
        except Unreachable as error:
            return self._unheard(call, error)
        except SecretUnknown as error:
            return failed(Failure.INPUT_INVALID, error.detail, retryable=False)

    def cancel(self, call_id: str) -> None:
        """Hang up; the run in Airflow goes on, until it is ended there."""
        self._http.cancel(call_id)

    def stop_elsewhere(self, call: StepCall) -> StepResult:
        """Mark the run as failed, which stops its tasks; one that is gone or over is left alone."""
        service, run = self._services.service(call.tenant_id, call.slug), _followed(call)
        if service is None or run is None:
            return canceled()
        try:
            reply = self._ask(service, call, "GET", run)
            if reply.is_ok and _state(reply) not in _OVER:
                reply = self._ask(service, call, "PATCH", run, {"state": "failed"})
            is_done = reply.is_ok or not failure_of(reply).retryable
        except (OutboundRefused, SecretUnknown):
            is_done = True
        except Unreachable:
            is_done = False
        return canceled() if is_done or is_over(call, self._clock) else _again(call, run)

    def _launch(self, service: Service, call: StepCall) -> StepResult:
        for attempt in range(call.attempt - 1, 0, -1):
            earlier = run_id(call.idempotency_key, attempt)
            reply = self._ask(service, call, "GET", earlier)
            if reply.status == _MISSING:
                continue
            if not reply.is_ok:
                return outcome_of(reply, call)
            if _state(reply) != "failed":
                return self._wait(call, earlier)
            break
        return self._post(service, call, run_id(call.idempotency_key, call.attempt))

    def _post(self, service: Service, call: StepCall, run: str) -> StepResult:
        body: JsonObject = {"dag_run_id": run, "conf": part(call.input, "conf")}
        if _api_path(service) != "/api/v1":
            body["logical_date"] = None  # required by the newer API, and null for a manual run
        reply = self._ask(service, call, "POST", None, body)
        if reply.is_ok or reply.status == _CONFLICT:
            return self._wait(call, run)
        return outcome_of(reply, call)

    def _look(self, service: Service, call: StepCall, run: str) -> StepResult:
        reply = self._ask(service, call, "GET", run)
        if reply.status == _MISSING:
            return failed(Failure.REMOTE_FAILED, f"expected the DAG run {run}, found it gone")
        if not reply.is_ok:
            failure = failure_of(reply)
            return self._wait(call, run) if failure.retryable else failure
        state = _state(reply)
        if state == "success":
            dag_id = str(call.input.get("dagId"))
            return succeeded({"dagId": dag_id, "runId": run, "state": state})
        if state == "failed":
            return failed(Failure.REMOTE_FAILED, f"expected the DAG run {run} to succeed")
        return self._wait(call, run)

    def _wait(self, call: StepCall, run: str) -> StepResult:
        return timed_out(call.timeout_s) if is_over(call, self._clock) else _again(call, run)

    def _unheard(self, call: StepCall, error: Unreachable) -> StepResult:
        """While a run is under way, silence only means to look again."""
        run = _followed(call)
        return self._wait(call, run) if run else outcome_from(error, call)

    def _ask(
        self,
        service: Service,
        call: StepCall,
        method: str,
        run: str | None,
        body: JsonObject | None = None,
    ) -> Reply:
        path = f"{_api_path(service)}/dags/{call.input.get('dagId')}/dagRuns"
        headers = {
            "accept": "application/json",
            "content-type": "application/json",
            **filled_headers(service.headers, self._secrets, call.tenant_id),
        }
        url = join_url(service.base_url, path if run is None else f"{path}/{run}")
        content = b"" if body is None else encode(body)
        request = Request(method, url, headers, content)
        return self._http.send(
            request, call_id=call.job_run_id, total_s=min(TOTAL_S, call.timeout_s)
        )


def run_id(key: str, attempt: int) -> str:
    """The id of an attempt's run, in the letters that Airflow takes."""
    if not _RUN_ID.fullmatch(key):
        key = f"penstock-{hashlib.sha256(key.encode()).hexdigest()}"
    return key if attempt == 1 else f"{key}-{attempt}"


def _again(call: StepCall, run: str) -> Waiting:
    seconds = call.input.get("pollSeconds")
    return Waiting(float(seconds) if isinstance(seconds, int) else POLL_S, {"runId": run})


def _followed(call: StepCall) -> str | None:
    """The run that an earlier look of this attempt was about."""
    run = call.token.get("runId") if isinstance(call.token, dict) else None
    return run if isinstance(run, str) else None


def _api_path(service: Service) -> str:
    found = service.metadata.get("apiPath")
    return found.rstrip("/") if isinstance(found, str) else API_PATH


def _state(reply: Reply) -> str | None:
    """How far the run is; an answer that is no DAG run says nothing, and is asked again."""
    try:
        tree = reply.json()
    except NotInProfile:
        return None
    state = tree.get("state") if isinstance(tree, dict) else None
    return state if isinstance(state, str) else None
