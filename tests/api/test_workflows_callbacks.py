"""A receiver that calls back is heard once, by the step that waits for it."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from tests.api.support import Server

from penstock.access.token import Scope
from penstock.envelope.context import WorkflowContext
from penstock.workflows.launch.callbacks import callbacks_in
from penstock.workflows.launch.request import Reply, Request
from penstock.workflows.launch.signature import message_id
from penstock.workflows.launch.webhook import Callback, Webhooks
from penstock.workflows.port import Failed, StepCall, Succeeded, Waiting


def message() -> str:
    return message_id(f"{uuid.uuid4()}.call")


def call_back(api: Server, to: str, **body: Any) -> httpx.Response:
    return api.admin.post(f"/v1/workflow-callbacks/{to}", json=body)


def heard(api: Server, of: str, tenant_id: str = "default") -> Callback | None:
    return callbacks_in(api.house.reader.by_id)(tenant_id, of)


class Receiver:
    """An HTTP side that takes every message."""

    def send(self, request: Request, *, call_id: str, total_s: float = 10.0) -> Reply:  # noqa: ARG002
        return Reply(200, {})

    def cancel(self, call_id: str) -> None:
        """Nothing is under way."""


def test_the_output_that_a_receiver_sends_is_what_the_step_hears(api: Server) -> None:
    to = message()
    assert heard(api, to) is None

    answered = call_back(api, to, succeeded=True, output={"rows": 24})

    assert (answered.status_code, answered.json()["data"]["messageId"]) == (202, to)
    assert heard(api, to) == Callback(True, {"rows": 24})


def test_a_failure_is_heard_with_its_reason(api: Server) -> None:
    to = message()

    call_back(api, to, succeeded=False, detail="no such file")

    assert heard(api, to) == Callback(False, None, "no such file")


def test_the_same_word_twice_is_harmless_and_another_word_is_409(api: Server) -> None:
    to = message()
    call_back(api, to, succeeded=True, output=1)

    again = call_back(api, to, succeeded=True, output=1)
    other = call_back(api, to, succeeded=False)

    assert (again.status_code, again.json()["data"]["status"]) == (202, "duplicate")
    assert (other.status_code, other.json()["code"]) == (409, "callback_conflict")
    assert heard(api, to) == Callback(True, 1)


def test_a_callback_is_heard_in_its_own_tenant_only(api: Server) -> None:
    to = message()
    with api.as_scopes(Scope.WORKFLOWS_RUN, tenant_id="acme") as other:
        other.post(f"/v1/workflow-callbacks/{to}", json={"succeeded": True})

    assert heard(api, to) is None
    assert heard(api, to, "acme") == Callback(True)


def test_nobody_can_say_it_past_this_door(api: Server) -> None:
    to = message()
    event = {
        "id": f"callback-{to}", "type": "penstock.callback.received", "source": "penstock.api",
        "payload": {"messageId": to, "succeeded": True},
    }  # fmt: skip
    with api.as_scopes(Scope.EVENTS_PUBLISH, Scope.WORKFLOWS_WRITE) as publisher:
        answered = publisher.post("/v1/events", json=event)

    assert (answered.status_code, answered.json()["code"]) == (422, "type_reserved")
    assert heard(api, to) is None


@pytest.mark.parametrize("to", ["odd.id", "%00", "x" * 101])
def test_a_message_that_cannot_be_is_404(api: Server, to: str) -> None:
    assert call_back(api, to, succeeded=True).status_code == 404


@pytest.mark.parametrize("body", [{}, {"succeeded": "yes"}, {"succeeded": True, "status": "ok"}])
def test_a_word_that_says_nothing_is_422(api: Server, body: dict[str, Any]) -> None:
    assert call_back(api, message(), **body).json()["code"] == "body_invalid"


@pytest.mark.parametrize("is_well", [True, False])
def test_a_step_that_waits_goes_on_when_its_receiver_called_back(
    api: Server, is_well: bool
) -> None:
    key = f"{uuid.uuid4()}.call"
    webhooks = Webhooks(
        Receiver(), lambda _tenant, _name: (), callbacks=callbacks_in(api.house.reader.by_id)
    )
    context = WorkflowContext(
        workflow_definition_id="d", workflow_run_id="r", workflow_run_step_id=key, job_run_id="j",
        job_slug="w",
    )  # fmt: skip
    first = StepCall(
        key, "j", 1, "webhook", "w", {"url": "https://a.example", "waitForCallback": True},
        context, 60, key, started_at=datetime.now(UTC),
    )  # fmt: skip
    waits = webhooks.run(first)
    assert isinstance(waits, Waiting)
    second = StepCall(
        key, "j", 1, "webhook", "w", first.input, context, 60, key, token=waits.token,
        started_at=first.started_at,
    )  # fmt: skip
    assert isinstance(webhooks.run(second), Waiting)

    call_back(api, message_id(key), succeeded=is_well, output={"n": 1}, detail="why")

    ended = webhooks.run(second)
    assert isinstance(ended, Succeeded if is_well else Failed)
