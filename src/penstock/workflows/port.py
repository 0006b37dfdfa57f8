"""Hand a step to whatever runs it, and take back what became of it.

    StepCall ── Executor.run ──▶ Succeeded(output) | Failed(reason, retryable) | Waiting(poll_after)

The queue owns when and how often a step runs; an executor owns how. An executor never raises: what
its handler raises, prints or breaks is a `Failed` with its reason. `Waiting` gives the worker back
its place: the call comes again after the pause, with the token that was given, until it ends. When
its run is over before that, what goes on elsewhere is ended (`Elsewhere`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeAlias, runtime_checkable

from penstock.envelope.context import WorkflowContext
from penstock.envelope.envelope import DEFAULT_TENANT, JsonObject, JsonValue


class Failure(StrEnum):
    """Why a step failed; dashboards count these, docs list them."""

    HANDLER_ERROR = "handler_error"  # the handler raised, or its process ended badly
    HANDLER_UNKNOWN = "handler_unknown"  # nothing is registered under that name
    TIMED_OUT = "timed_out"
    CANCELED = "canceled"
    OUTPUT_INVALID = "output_invalid"  # no JSON, or too much of it
    INPUT_INVALID = "input_invalid"  # what the step was given does not fit its handler
    UNRESOLVED_INPUT = "unresolved_input"  # a template names what is not there
    SERVICE_UNKNOWN = "service_unknown"
    SERVICE_UNHEALTHY = "service_unhealthy"
    ADDRESS_REFUSED = "address_refused"  # the outbound guard said no
    REQUEST_FAILED = "request_failed"  # no answer, or a bad one
    REMOTE_FAILED = "remote_failed"  # the other engine's run ended badly
    WORKER_LOST = "worker_lost"  # its worker died too often while it ran
    HEARTBEAT_TIMEOUT = "heartbeat-timeout"  # its worker said nothing for too long


@dataclass(frozen=True, slots=True)
class StepCall:
    """One attempt of one step. `job_run_id` names the attempt, and cancels it."""

    run_step_id: str
    job_run_id: str
    attempt: int  # from 1; counts what its retry policy counts
    kind: str  # function | subprocess | service | spark | webhook | airflow
    slug: str  # the handler, service, or other thing that is called
    input: JsonObject  # the step's own part, rendered: parameters, request, conf, body …
    context: WorkflowContext
    timeout_s: float
    idempotency_key: str  # the same for every attempt of the step
    correlation_id: str | None = None
    causation_id: str | None = None
    tenant_id: str = DEFAULT_TENANT
    token: JsonValue = None  # what the last Waiting of this attempt carried; None at first
    started_at: datetime | None = None  # when this attempt began, by the database's clock


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The step is done."""

    output: JsonValue = None
    logs: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed; it is tried again when it may be and the policy allows it."""

    reason: str  # a `Failure`
    detail: str
    logs: str | None = None
    retryable: bool = True


@dataclass(frozen=True, slots=True)
class Waiting:
    """The work goes on elsewhere; look again after a while."""

    poll_after_s: float
    token: JsonValue = None


StepResult: TypeAlias = Succeeded | Failed | Waiting


class Executor(Protocol):
    """Whatever can run steps; called from several threads at once."""

    def run(self, call: StepCall) -> StepResult:
        """Run one attempt to its end, its time limit, or its cancellation."""
        ...

    def cancel(self, call_id: str) -> None:
        """Stop the attempt with this `job_run_id`; nothing happens when it is not running."""
        ...


@runtime_checkable
class Elsewhere(Protocol):
    """An executor whose work goes on in another engine between looks, and can be ended there."""

    def stop_elsewhere(self, call: StepCall) -> StepResult:
        """End what an attempt that waits has started, because its run is over.

        `Failed` when there is nothing more to do, `Waiting` to be called once more after a while.
        """
        ...


@dataclass(frozen=True, slots=True)
class Service:
    """A service that steps may call: where it is, and how it is."""

    tenant_id: str
    slug: str
    base_url: str
    display_name: str = ""
    kind: str = "external"
    status: str = "unknown"  # unknown | healthy | degraded | unreachable
    health_path: str | None = None
    headers: JsonObject = field(default_factory=dict)  # sent with every call
    metadata: JsonObject = field(default_factory=dict)
    updated_at: datetime | None = None


class Services(Protocol):
    """Where executors look up the services they call."""

    def service(self, tenant_id: str, slug: str) -> Service | None:
        """The service by that name, or None."""
        ...
