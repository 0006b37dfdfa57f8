"""Hold a trigger: which events it wants, what it starts for them, and how often at most.

    TriggerSpec   what a person writes: fields and limits of docs/reference/triggers.md
    Trigger       one version of it, in one tenant, for one workflow

A version never changes: another spec is another version, kept for ever, so that every verdict can
be explained by the words that were in force. `check.check_spec` reads a spec from JSON and says
all that is wrong with it; here is only what pydantic can say.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, StrictStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from penstock.base.clock import format_instant
from penstock.envelope.codec import canonical
from penstock.envelope.envelope import JsonObject
from penstock.envelope.names import is_glob, source_fault, type_fault
from penstock.store.values import is_storable, read_type
from penstock.triggers.clause import DEPTH_MAX, LEAVES_MAX, Clause, Edge, leaves

NAME_CHARS_MAX: Final = 200
DESCRIPTION_CHARS_MAX: Final = 2_000
RUN_KEY_TEMPLATE_CHARS_MAX: Final = 500
KEY_TEMPLATE_CHARS_MAX: Final = 200
DAY_MS: Final = 86_400_000
THROTTLE_COUNT_MAX: Final = 10_000
CONCURRENCY_MAX: Final = 1_000
BATCH_EVENTS_MAX: Final = 1_000
ATTEMPTS_MAX: Final = 20
ATTEMPTS_DEFAULT: Final = 5

_Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX)]
_Text = Annotated[str, Field(max_length=DESCRIPTION_CHARS_MAX)]
_Key = Annotated[str, Field(min_length=1, max_length=KEY_TEMPLATE_CHARS_MAX)]
_RunKey = Annotated[str, Field(min_length=1, max_length=RUN_KEY_TEMPLATE_CHARS_MAX)]
_Millis = Annotated[int, Field(strict=True, ge=1, le=DAY_MS)]


class TriggerStatus(StrEnum):
    """Whether a trigger acts: for real, only on paper, or not at all."""

    ACTIVE = "active"
    SHADOW = "shadow"
    DISABLED = "disabled"


class Per(StrEnum):
    """What one run is for: each event, a batch of them, or the newest of a group."""

    EVENT = "event"
    BATCH = "batch"
    LATEST = "latest"


class TriggerSpec(Edge):
    """What a person writes: which events, and what to do for them."""

    name: _Name
    description: _Text | None = None
    event_type: Annotated[str, Field(min_length=1, max_length=200)]
    event_source: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    predicates: Annotated[tuple[Clause, ...], Field(max_length=LEAVES_MAX)] = ()
    parameter_template: Any = None
    run_key_template: _RunKey | None = None
    idempotency_key_expression: _Key | None = None
    throttle_window_ms: _Millis | None = None
    throttle_count: Annotated[int, Field(strict=True, ge=1, le=THROTTLE_COUNT_MAX)] | None = None
    max_concurrency: Annotated[int, Field(strict=True, ge=1, le=CONCURRENCY_MAX)] | None = None
    debounce_ms: _Millis | None = None
    debounce_key: _Key | None = None
    per: Per = Per.EVENT
    batch_max_events: Annotated[int, Field(strict=True, ge=1, le=BATCH_EVENTS_MAX)] | None = None
    batch_timeout_ms: _Millis | None = None
    group_key: _Key | None = None
    max_attempts: Annotated[int, Field(strict=True, ge=1, le=ATTEMPTS_MAX)] = ATTEMPTS_DEFAULT
    status: TriggerStatus = TriggerStatus.ACTIVE
    metadata: dict[StrictStr, Any] | None = None

    @field_validator("name", "description")
    @classmethod
    def _is_storable(cls, text: str | None) -> str | None:
        if text is not None and not is_storable(text):
            raise _fault("expected text without NUL and lone surrogates")
        return text

    @field_validator("event_type")
    @classmethod
    def _is_type_or_glob(cls, text: str) -> str:
        if not is_glob(text):
            fault = type_fault(text)
            if fault is not None:
                raise _fault(fault)
            return text
        try:
            return read_type(text)
        except ValueError as error:
            raise _fault(str(error)) from None

    @field_validator("event_source")
    @classmethod
    def _is_source(cls, text: str | None) -> str | None:
        fault = None if text is None else source_fault(text)
        if fault is not None:
            raise _fault(fault)
        return text

    @field_validator("predicates")
    @classmethod
    def _are_bounded(cls, clauses: tuple[Clause, ...]) -> tuple[Clause, ...]:
        found = [depth for clause in clauses for _, depth in leaves(clause)]
        if len(found) > LEAVES_MAX:
            raise _fault(f"expected at most {LEAVES_MAX} comparisons, found {len(found)}")
        if max(found, default=0) > DEPTH_MAX:
            raise _fault(f"expected at most {DEPTH_MAX} levels, found {max(found)}")
        return clauses

    @model_validator(mode="after")
    def _fit_together(self) -> TriggerSpec:
        for field, fault in _faults_between(self):
            raise PydanticCustomError("between", "{fault}", {"fault": fault, "field": field})
        return self

    def wire(self) -> JsonObject:
        """Every field, null where nothing was said; `TriggerSpec.model_validate` reads it back."""
        plain: JsonObject = self.model_dump(by_alias=True, exclude={"predicates"})
        plain["predicates"] = [clause.wire() for clause in self.predicates]
        plain["per"], plain["status"] = str(self.per), str(self.status)
        return plain


@dataclass(frozen=True, slots=True)
class Trigger:
    """One version of a trigger."""

    id: str
    tenant_id: str
    workflow_slug: str
    version: int
    spec: TriggerSpec
    created_at: datetime
    created_by: str
    updated_at: datetime
    updated_by: str

    @property
    def title(self) -> str:
        """What people call it: of several triggers of a workflow, this one."""
        return f"{self.workflow_slug}/{self.spec.name}"

    def wire(self) -> JsonObject:
        """The trigger as the API and templates show it."""
        return {
            "id": self.id,
            "tenantId": self.tenant_id,
            "workflowSlug": self.workflow_slug,
            "version": self.version,
            **self.spec.wire(),
            "createdAt": format_instant(self.created_at),
            "createdBy": self.created_by,
            "updatedAt": format_instant(self.updated_at),
            "updatedBy": self.updated_by,
        }


def is_material_change(a: TriggerSpec, b: TriggerSpec) -> bool:
    """Whether `b` says anything else than `a`, and so deserves a version of its own.

    Every field counts: templates may read all of them. 1 and 1.0 and true are different words.
    """
    return canonical(a.wire()) != canonical(b.wire())


def _faults_between(spec: TriggerSpec) -> list[tuple[str, str]]:
    """What is wrong between fields: the alias of a field, and a sentence."""
    found: list[tuple[str, str]] = []
    if (spec.throttle_window_ms is None) != (spec.throttle_count is None):
        missing = "throttleCount" if spec.throttle_count is None else "throttleWindowMs"
        found.append(
            (missing, "expected throttleWindowMs and throttleCount together, found one of them")
        )
    if spec.debounce_key is not None and spec.debounce_ms is None:
        found.append(("debounceKey", "expected debounceMs beside debounceKey, found none"))
    if spec.debounce_ms is not None and spec.per is not Per.EVENT:
        found.append(("debounceMs", f"expected debounceMs with per: event, found per: {spec.per}"))
    if spec.group_key is not None and spec.per is Per.EVENT:
        found.append(("groupKey", "expected groupKey with per: batch or latest, found per: event"))
    for alias, value in (
        ("batchMaxEvents", spec.batch_max_events),
        ("batchTimeoutMs", spec.batch_timeout_ms),
    ):
        if (value is None) == (spec.per is Per.BATCH):
            was = "found nothing" if value is None else f"found it with per: {spec.per}"
            where = "with per: batch" if value is None else "only with per: batch"
            found.append((alias, f"expected {alias} {where}, {was}"))
    return found


def _fault(detail: str) -> PydanticCustomError:
    return PydanticCustomError("fault", "{detail}", {"detail": detail})
