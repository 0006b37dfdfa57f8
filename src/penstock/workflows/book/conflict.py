"""Refuse a change of something that is not what the caller thinks it is."""

from __future__ import annotations

from penstock.base.errors import PenstockError


class WorkflowConflict(PenstockError):
    """A slug that is taken. Nothing was changed."""

    code = "workflow_conflict"
    remedy = "Choose another slug, or change the workflow that has it: PATCH /workflows/{slug}."


class WorkflowChanged(PenstockError):
    """Somebody changed the workflow or the schedule since it was read. Nothing was changed now."""

    code = "workflow_changed"
    remedy = "Read it again, make the change to what it is now, and send its ETag in If-Match."

    def __init__(self, what: str, *, expected: int, found: int) -> None:
        super().__init__(f"expected version {expected} of the {what}, found version {found}")


def require_version(what: str, expected: int | None, found: int) -> None:
    """WorkflowChanged unless the version found is the one expected; None expects any."""
    if expected is not None and expected != found:
        raise WorkflowChanged(what, expected=expected, found=found)
