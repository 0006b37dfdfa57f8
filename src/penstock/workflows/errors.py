"""Name what is refused about workflows before anything runs, with a code and a remedy.

    PenstockError
    ├── WorkflowInvalid     a definition with faults; each has a pointer
    ├── ParametersInvalid   parameters that do not fit the workflow's schema
    ├── RunKeyInvalid       a run key that is nothing once it is cleaned
    └── ScheduleInvalid     a cron expression, time zone or window that means nothing

A step that goes wrong while it runs is no exception: it is a failed step with its `Reason`.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.base.errors import Fault, PenstockError

_SHOWN = 5  # faults in the sentence; `faults` has them all


class _Faulty(PenstockError):
    """A document with faults in it, told in one sentence."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        said = [f"{fault.pointer or '/'}: {fault.detail}" for fault in faults[:_SHOWN]]
        more = [f"and {len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
        super().__init__("; ".join(said + more), faults=tuple(faults))


class WorkflowInvalid(_Faulty):
    """A workflow definition that cannot be run."""

    code = "workflow_invalid"
    remedy = "Correct the places that `errors` names; docs/reference/workflows.md lists the fields."


class ParametersInvalid(_Faulty):
    """Parameters that do not fit the schema of the workflow."""

    code = "parameters_invalid"
    remedy = "Send parameters that fit the workflow's `parametersSchema`; `errors` says where not."


class RunKeyInvalid(PenstockError):
    """A run key of which nothing is left, or that is too long."""

    code = "run_key_invalid"
    remedy = "Use 1 to 120 of A-Z a-z 0-9 _ . : - with something else than a hyphen in it."


class ScheduleInvalid(_Faulty):
    """A schedule that can never fire, or that says something unknown."""

    code = "schedule_invalid"
    remedy = "Use five cron fields, an IANA time zone, and a window that ends after it starts."
