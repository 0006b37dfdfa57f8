"""The guide runs as it stands there, and the reference leaves no field and no word out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from penstock.triggers.files import FilesInvalid, Kind, read_files
from penstock.workflows import steps
from penstock.workflows.definition import WorkflowDefinition
from penstock.workflows.documents import CHECKS
from penstock.workflows.params import FANOUT_FIELDS, OWN_FIELDS, RUN_FIELDS
from penstock.workflows.run import Reason, RunStatus, StepStatus
from penstock.workflows.schedule import ScheduleSpec

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "guides" / "workflows.md").read_text()
PAGE = (DOCS / "reference" / "workflows.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def fields() -> Iterator[str]:
    forms: list[type[BaseModel]] = [WorkflowDefinition, ScheduleSpec, steps.RetryPolicy]
    forms += [steps.Request, steps.FunctionStep, steps.ServiceStep, steps.WebhookStep]
    forms += [steps.AirflowStep, steps.FanoutStep]
    for form in forms:
        for name, field in form.model_fields.items():
            yield field.alias or name


def test_the_files_of_the_guide_can_be_applied() -> None:
    items = read_files([("guide.yml", "---\n".join(blocks("yaml")))], CHECKS)

    assert [(item.kind, item.name) for item in items] == [
        (Kind.WORKFLOW, "load-orders"),
        (Kind.SCHEDULE, "load-orders/nightly"),
    ]


def test_the_python_of_the_guide_runs_on_the_workflow_of_the_guide() -> None:
    (workflow, *_) = read_files([("guide.yml", blocks("yaml")[0])], CHECKS)

    (code,) = blocks("python")
    exec(compile(code, "workflows.md", "exec"), {"definition": workflow.body})  # noqa: S102


def test_a_fault_in_a_file_is_named_with_its_line() -> None:
    wrong = blocks("yaml")[0].replace("dependsOn: [load]", "dependsOn: [nobody]")

    with pytest.raises(FilesInvalid) as refused:
        read_files([("guide.yml", wrong)], CHECKS)

    (fault,) = refused.value.faults
    line = wrong.splitlines()[int(fault.pointer.partition(":")[2]) - 1]
    assert "nobody" in line
    assert fault.detail == "/steps/2/dependsOn/0: expected the id of a step, found 'nobody'"


WORDS = {*fields(), *steps.Kind, *Reason, *RunStatus, *StepStatus}
WORDS |= RUN_FIELDS | OWN_FIELDS | FANOUT_FIELDS


@pytest.mark.parametrize("word", sorted(map(str, WORDS)))
def test_every_field_status_and_reason_is_in_the_reference(word: str) -> None:
    assert f"`{word}`" in PAGE
