"""Refuse a change of something that is not what the caller thinks it is."""

from __future__ import annotations

from penstock.base.errors import PenstockError


class WorkflowConflict(PenstockError):
    """A name that is taken, or a version that is no longer the newest. Nothing was changed."""

    code = "workflow_conflict"
    remedy = "Read it again, make the change to what it is now, and send its version."
