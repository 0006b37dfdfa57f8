"""Make a Python function a job: what it is given, what it may do, and under which name it is found.

    @job("load-weather", schema={"type": "object", "required": ["city"]})
    def load_weather(job: JobContext) -> JsonObject:
        return {"rows": load(job.parameters["city"])}

A handler gets one JobContext and gives back JSON. What it publishes carries the workflow's context
by itself. It may be `async`, may raise `StepFailed(…, retryable=False)`, and is stopped when its
time is over: `job.is_stopping` says so to those who look.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

import jsonschema_rs

from penstock.envelope.codec import encode
from penstock.envelope.context import WorkflowContext, workflow_event_context
from penstock.envelope.envelope import DEFAULT_TENANT, JsonObject
from penstock.publish.cause import handling
from penstock.workflows.launch.errors import JobInvalid
from penstock.workflows.port import StepCall

_SLUG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")
_FAULTS_SHOWN: Final = 5

Handler: TypeAlias = Callable[["JobContext"], Any]
_Handler = TypeVar("_Handler", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a handler is given: its parameters, and which attempt of which step this is."""

    parameters: JsonObject
    workflow: WorkflowContext
    attempt: int
    idempotency_key: str  # the same for every attempt: hand it on to whatever must happen once
    timeout_s: float
    correlation_id: str | None = None
    causation_id: str | None = None
    tenant_id: str = DEFAULT_TENANT
    stopping: threading.Event = field(default_factory=threading.Event, compare=False)
    session: Any = None  # the Spark session, for jobs of that kind

    @property
    def is_stopping(self) -> bool:
        """Whether the step was canceled or its time is over; nobody waits for its result."""
        return self.stopping.is_set()

    @property
    def workflow_event_context(self) -> WorkflowContext:
        """The workflow's context, under the name it has everywhere else."""
        return self.workflow

    def get_workflow_event_context(self) -> WorkflowContext:
        """The same, for code that calls for it."""
        return self.workflow

    @classmethod
    def of(cls, call: StepCall, *, session: Any = None) -> JobContext:
        """The context of one attempt."""
        return cls(
            parameters=call.input,
            workflow=call.context,
            attempt=call.attempt,
            idempotency_key=call.idempotency_key,
            timeout_s=call.timeout_s,
            correlation_id=call.correlation_id,
            causation_id=call.causation_id,
            tenant_id=call.tenant_id,
            session=session,
        )

    @contextmanager
    def entered(self) -> Iterator[None]:
        """What is published inside says which step it comes from, and which event caused it."""
        with ExitStack() as stack:
            stack.enter_context(workflow_event_context(self.workflow))
            if self.correlation_id is not None:
                cause = {"id": self._cause(), "correlationId": self.correlation_id}
                stack.enter_context(handling(cause))
            yield

    def _cause(self) -> str:
        """The event that started the run, or else the one that says that it runs."""
        return self.causation_id or f"run-{self.workflow.workflow_run_id}-running"


@dataclass(frozen=True, slots=True)
class Job:
    """A registered handler. `inline` ones are so quick that they need no thread and no limit."""

    slug: str
    handler: Handler
    schema: str | None = None  # JSON text: a schema is compiled once per text
    inline: bool = False

    @property
    def is_async(self) -> bool:
        """Whether the handler is awaited."""
        return inspect.iscoroutinefunction(self.handler)

    def misfit(self, parameters: JsonObject) -> str | None:
        """What is wrong with the parameters; None when they fit."""
        if self.schema is None:
            return None
        found = [
            f"{'/'.join(map(str, ('', *error.instance_path))) or '/'}: {error.message}"
            for error in _compiled(self.schema).iter_errors(parameters)
        ]
        return "; ".join(found[:_FAULTS_SHOWN])[:2_000] or None


@dataclass(frozen=True, slots=True)
class Command:
    """A registered program for subprocess steps: parameters on stdin, a result on descriptor 3.

    A program that writes nothing there may print its result as JSON in its last line.
    """

    slug: str
    argv: tuple[str, ...]


def job(
    slug: str, *, schema: JsonObject | None = None, inline: bool = False
) -> Callable[[_Handler], _Handler]:
    """Register the function below under a name; JobInvalid if the name is taken by another."""
    from penstock.workflows.launch.registry import JOBS

    def register(handler: _Handler) -> _Handler:
        JOBS.add(make_job(slug, handler, schema=schema, inline=inline))
        return handler

    return register


def make_job(
    slug: str, handler: Handler, *, schema: JsonObject | None = None, inline: bool = False
) -> Job:
    """A job, checked: its name, its schema, and that an inline one does not wait."""
    if not _SLUG.fullmatch(slug):
        raise JobInvalid(f"expected a name of letters, digits and _ . : -, found {slug[:40]!r}")
    if inline and inspect.iscoroutinefunction(handler):
        raise JobInvalid(f"{slug}: expected an inline handler to be a plain function")
    text = None if schema is None else encode(schema).decode()
    if text is not None:
        try:
            _compiled(text)
        except ValueError as error:
            raise JobInvalid(f"{slug}: expected a JSON Schema, found {error}") from None
    return Job(slug, handler, text, inline)


@cache
def _compiled(schema: str) -> Any:
    return jsonschema_rs.validator_for(schema)
