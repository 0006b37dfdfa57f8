"""Gather the executors of all kinds into one, from plain settings.

    function    in_process     spark    on_spark        webhook   webhook ──┐
    subprocess  sandbox        service  service ──┐     airflow   airflow ──┴── over_http ── guard
                                                  └──────────────────────────────┘

One value runs any step: it looks at the kind and hands the call on. It never raises.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.base.clock import Clock, SystemClock
from penstock.workflows.launch.airflow import Airflow
from penstock.workflows.launch.credentials import Secrets, no_secrets
from penstock.workflows.launch.guard import PORTS, Guard
from penstock.workflows.launch.in_process import ABANDONED_MAX, InProcess
from penstock.workflows.launch.over_http import Outbound
from penstock.workflows.launch.registry import JOBS, Jobs
from penstock.workflows.launch.results import canceled, failed, raised
from penstock.workflows.launch.sandbox.limits import Limits, Surroundings
from penstock.workflows.launch.sandbox.over_pipe import Sandbox
from penstock.workflows.launch.service import ServiceCalls
from penstock.workflows.launch.webhook import Callbacks, Webhooks
from penstock.workflows.port import (
    Elsewhere,
    Executor,
    Failure,
    Services,
    StepCall,
    StepResult,
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExecutorSettings:
    """Everything the executors need to be told; the house reads it from the settings."""

    allowed_cidrs: tuple[str, ...] = ()
    allowed_ports: frozenset[int] = PORTS
    blocked_ports: frozenset[int] = frozenset()  # our own
    sandbox_environment: Mapping[str, str] = field(default_factory=dict)  # PENSTOCK_URL, …TOKEN
    sandbox_limits: Limits = field(default_factory=Limits)
    abandoned_max: int = ABANDONED_MAX


class Executors:
    """The executor of every kind; itself an executor, shared by threads."""

    def __init__(self, by_kind: Mapping[str, Executor], inside: InProcess) -> None:
        self._by_kind = dict(by_kind)
        self._inside = inside

    @property
    def kinds(self) -> Iterable[str]:
        """The kinds that this worker can run."""
        return self._by_kind.keys()

    @property
    def abandoned(self) -> int:
        """How many handlers never returned and still hold a thread."""
        return self._inside.abandoned

    @property
    def is_exhausted(self) -> bool:
        """Whether this process should stop taking steps and be restarted."""
        return self._inside.is_exhausted

    def is_inline(self, call: StepCall) -> bool:
        """Whether the worker may run this call in its own loop."""
        return call.kind == "function" and self._inside.is_inline(call)

    def run(self, call: StepCall) -> StepResult:
        """Run one attempt, whatever its kind."""
        executor = self._by_kind.get(call.kind)
        if executor is None:
            detail = f"expected one of {', '.join(self._by_kind)}, found a step of kind {call.kind}"
            return failed(Failure.HANDLER_UNKNOWN, detail)
        try:
            return executor.run(call)
        except Exception as error:  # noqa: BLE001  the boundary: it is recorded, a worker goes on
            _log.exception("step %s of kind %s broke its executor", call.run_step_id, call.kind)
            return raised(error)

    def stop_elsewhere(self, call: StepCall) -> StepResult:
        """End what an attempt has started in another engine, if its executor can."""
        executor: object = self._by_kind.get(call.kind)
        if not isinstance(executor, Elsewhere):
            return canceled()
        try:
            return executor.stop_elsewhere(call)
        except Exception:  # noqa: BLE001  the boundary: it is recorded, a worker goes on
            _log.exception("step %s of kind %s could not be stopped", call.run_step_id, call.kind)
            return canceled()

    def cancel(self, call_id: str) -> None:
        """Stop the attempt with this id, whichever executor runs it."""
        for executor in self._by_kind.values():
            executor.cancel(call_id)

    def close(self) -> None:
        """Let idle threads go."""
        self._inside.close()


def make_executors(
    settings: ExecutorSettings,
    services: Services,
    *,
    jobs: Jobs = JOBS,
    secrets: Secrets = no_secrets,
    callbacks: Callbacks | None = None,
    open_session: Callable[[], Any] | None = None,
    http: Outbound | None = None,
    clock: Clock | None = None,
) -> Executors:
    """All executors; without `open_session` this worker takes no Spark steps."""
    http = http or make_outbound(settings)
    clock = clock or SystemClock()
    inside = InProcess(jobs, abandoned_max=settings.abandoned_max)
    by_kind: dict[str, Executor] = {
        "function": inside,
        "subprocess": Sandbox(
            jobs,
            limits=settings.sandbox_limits,
            surroundings=Surroundings(settings.sandbox_environment),
        ),
        "service": ServiceCalls(http, services, secrets),
        "webhook": Webhooks(http, secrets, callbacks=callbacks, clock=clock),
        "airflow": Airflow(http, services, secrets, clock=clock),
    }
    if open_session is not None:
        from penstock.workflows.launch.on_spark import SparkJobs

        by_kind["spark"] = SparkJobs(jobs, open_session, inside)
    return Executors(by_kind, inside)


def make_outbound(settings: ExecutorSettings) -> Outbound:
    """The guarded way out, also for alerts; SettingsInvalid for a network that is none."""
    return Outbound(
        Guard.of(
            settings.allowed_cidrs,
            ports=settings.allowed_ports,
            blocked_ports=settings.blocked_ports,
        )
    )
