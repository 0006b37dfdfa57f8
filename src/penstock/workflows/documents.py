"""Check the workflows and schedules that are kept as files, beside the triggers that use them.

`triggers.files.read_files(texts, CHECKS)` then knows every kind but services, and names the file
and the line of each fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.envelope.envelope import JsonObject
from penstock.triggers.files import Check, Kind
from penstock.workflows.definition import read_definition
from penstock.workflows.schedule import read_schedule


def check_workflow(body: JsonObject) -> JsonObject:
    """The definition that a Workflow document says, with its defaults."""
    return read_definition(body).wire()


def check_schedule(body: JsonObject) -> JsonObject:
    """The schedule that a Schedule document says, with its defaults."""
    return read_schedule(body).wire()


CHECKS: Final[Mapping[Kind, Check]] = {
    Kind.WORKFLOW: check_workflow,
    Kind.SCHEDULE: check_schedule,
}
