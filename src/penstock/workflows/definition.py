"""Read a workflow definition, or say at every place what is wrong with it.

    document ── shape ──▶ sizes, schemas ──▶ no circle ──▶ templates resolve ──▶ definition
                  └────────────┴─────────────────┴─────────────────┴──▶ WorkflowInvalid (pointers)

`WorkflowDefinition` is what a person writes; `Workflow` is one stored version of it. What `read`
accepts can always be run to an end: tests/workflows/test_advance.py runs random ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal, TypeAlias

from pydantic import Field, ValidationError

from penstock.base.clock import format_instant
from penstock.base.errors import Fault
from penstock.base.faults import FAULTS_MAX, form_faults
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.schema import compile_faults
from penstock.workflows.dag import Dag, dag_faults, dag_of
from penstock.workflows.errors import WorkflowInvalid
from penstock.workflows.forms import (
    AnyObject,
    Form,
    Name,
    Slug,
    model_wire,
)
from penstock.workflows.scope import scope_faults
from penstock.workflows.steps import Step

STEPS_MAX = 100
DEFINITION_BYTES_MAX = 256 * 1024
METADATA_BYTES_MAX = 16 * 1024

Status: TypeAlias = Literal["active", "disabled"]


class WorkflowDefinition(Form):
    """What a workflow does: its steps, what it is given, and what it gives."""

    slug: Slug
    name: Name
    description: str | None = Field(default=None, max_length=2_000)
    steps: list[Step] = Field(min_length=1, max_length=STEPS_MAX)
    parameters_schema: AnyObject | None = None
    default_parameters: AnyObject = Field(default_factory=dict)
    output_schema: AnyObject | None = None
    metadata: AnyObject = Field(default_factory=dict)

    @cached_property
    def dag(self) -> Dag:
        """Which step comes after which."""
        return dag_of({step.id: step.depends_on for step in self.steps})

    def wire(self) -> JsonObject:
        """The definition as it was written, under its wire names, with its defaults."""
        return model_wire(self)


@dataclass(frozen=True, slots=True)
class Workflow:
    """One version of a definition, as the book keeps it."""

    id: str
    tenant_id: str
    version: int
    definition: WorkflowDefinition
    created_at: datetime
    created_by: str
    updated_at: datetime
    updated_by: str
    status: Status = "active"

    def wire(self) -> JsonObject:
        """The workflow as the API shows it."""
        return {
            "id": self.id,
            "version": self.version,
            "status": self.status,
            **self.definition.wire(),
            "dag": self.definition.dag.wire(),
            "createdAt": format_instant(self.created_at),
            "createdBy": self.created_by,
            "updatedAt": format_instant(self.updated_at),
            "updatedBy": self.updated_by,
        }


def read_definition(document: JsonValue) -> WorkflowDefinition:
    """The definition that a document says; WorkflowInvalid names every place that is wrong."""
    try:
        definition = WorkflowDefinition.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        raise WorkflowInvalid(form_faults(error, document)) from None
    found = _meaning_faults(definition)
    if found:
        raise WorkflowInvalid(found[:FAULTS_MAX])
    return definition


def is_material_change(before: WorkflowDefinition, after: WorkflowDefinition) -> bool:
    """Whether a new version is due: anything but the same document."""
    return encode(before.wire()) != encode(after.wire())


def _meaning_faults(definition: WorkflowDefinition) -> list[Fault]:
    found = _size_faults(definition)
    for name in ("parametersSchema", "outputSchema"):
        schema = definition.parameters_schema if name[0] == "p" else definition.output_schema
        if schema is not None:
            found += [Fault(f"/{name}{f.pointer}", f.detail) for f in compile_faults(schema)]
    graph = dag_faults([(step.id, step.depends_on) for step in definition.steps])
    # Who may read whose output is only known when the steps form a graph.
    return found + (graph or scope_faults(definition.steps, definition.dag))


def _size_faults(definition: WorkflowDefinition) -> list[Fault]:
    sizes = (
        ("", len(encode(definition.wire())), DEFINITION_BYTES_MAX),
        ("/metadata", len(encode(definition.metadata)), METADATA_BYTES_MAX),
    )
    return [
        Fault(place, f"expected at most {most} bytes, found {size}")
        for place, size, most in sizes
        if size > most
    ]
