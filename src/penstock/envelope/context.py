"""Carry the workflow that is running, so that the events it publishes can say so.

    with workflow_event_context(ctx):  ──▶ ContextVar ──▶ get_workflow_event_context()
    to_environment(ctx)  ──▶ APPHUB_WORKFLOW_EVENT_CONTEXT of a child process ──▶ the same call

A ContextVar keeps concurrent runs apart: each asyncio task has its own, a retry enters it anew, and
a new thread starts without one unless its function went through `carry`. A context that is blank
anywhere does not exist; one over 2 KB is dropped, counted and logged, never cut.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from itertools import count
from typing import Annotated, ClassVar, Final, ParamSpec, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from penstock.base.errors import Fault, NotInProfile
from penstock.base.pointers import pointer
from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import JsonObject, JsonValue

VARIABLE: Final = "APPHUB_WORKFLOW_EVENT_CONTEXT"
METADATA_KEY: Final = "__apphubWorkflow"
CONTEXT_BYTES_MAX: Final = 2048

_Text = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1)]
_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


class WorkflowContext(BaseModel):
    """Which step of which run is at work. Every field is trimmed; none may be blank."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )

    workflow_definition_id: _Text
    workflow_run_id: _Text
    workflow_run_step_id: _Text
    job_run_id: _Text
    job_slug: _Text
    workflow_run_key: _Text | None = None

    def wire(self) -> JsonObject:
        """The context as it stands in metadata."""
        return self.model_dump(by_alias=True, exclude_none=True)


_current: ContextVar[WorkflowContext | None] = ContextVar("workflow_event_context", default=None)
_KNOWN: Final = frozenset(to_camel(name) for name in WorkflowContext.model_fields)


class _Dropped:
    """How many contexts were too large to carry, counted without losing one between threads."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.total = 0

    def add(self, size: int) -> None:
        self.total = max(self.total, next(self._numbers))
        _log.warning(
            "workflow context dropped: expected at most %d bytes, found %d (%d dropped so far)",
            CONTEXT_BYTES_MAX, size, self.total,
        )  # fmt: skip


_dropped = _Dropped()


def dropped_contexts() -> int:
    """How many contexts this process dropped because they were too large."""
    return _dropped.total


@contextmanager
def workflow_event_context(context: WorkflowContext | None) -> Iterator[WorkflowContext | None]:
    """Make `context` the current one inside the block, and the former one again after it."""
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)


def get_workflow_event_context() -> WorkflowContext | None:
    """The context of this task, else the one this process was started with, else None."""
    context = _current.get()
    if context is not None:
        return context
    text = os.environ.get(VARIABLE)
    return _from_text(text) if text else None


def carry(function: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """`function` under the context of now, for a thread or a pool that would start without it."""
    context = get_workflow_event_context()

    @wraps(function)
    def carried(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        with workflow_event_context(context):
            return function(*args, **kwargs)

    return carried


def to_environment(context: WorkflowContext | None) -> dict[str, str]:
    """The variables that give a child process this context; none when there is none to give."""
    text = _sized(context)
    return {} if text is None else {VARIABLE: text.decode()}


def inject(
    metadata: Mapping[str, JsonValue], context: WorkflowContext | None
) -> dict[str, JsonValue]:
    """`metadata` with the context in it, unless it speaks of a workflow already."""
    if METADATA_KEY in metadata or context is None or _sized(context) is None:
        return dict(metadata)
    return {**metadata, METADATA_KEY: context.wire()}


def context_faults(value: JsonValue) -> tuple[Fault, ...]:
    """What is wrong with the context that a publisher wrote into metadata itself."""
    try:
        WorkflowContext.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        return tuple(
            Fault(pointer(found["loc"]), _EXPECTED.get(found["type"], _TEXT))
            for found in error.errors(include_url=False, include_input=False)
        )
    return ()


_TEXT: Final = "expected a string that is not blank, found something else"
_EXPECTED: Final = {
    "missing": "expected a string that is not blank, found nothing",
    "model_type": "expected an object, found something else",
    "extra_forbidden": f"expected no key but {', '.join(sorted(_KNOWN))}, found one",
}


@lru_cache(16)
def _from_text(text: str) -> WorkflowContext | None:
    """The context that a parent process wrote; what else its text says is left out."""
    if len(text.encode(errors="replace")) > CONTEXT_BYTES_MAX:
        _dropped.add(len(text.encode(errors="replace")))
        return None
    try:
        tree = decode(text.encode())
        known = {key: tree[key] for key in _KNOWN & tree.keys()} if isinstance(tree, dict) else None
        return WorkflowContext.model_validate(known)
    except (NotInProfile, UnicodeEncodeError, ValidationError):
        return None


def _sized(context: WorkflowContext | None) -> bytes | None:
    if context is None:
        return None
    text = encode(context.wire())
    if len(text) > CONTEXT_BYTES_MAX:
        _dropped.add(len(text))
        return None
    return text
