"""Offer workers their jobs: those of the operator's modules, and two of our own.

penstock.echo      gives back its parameters
penstock.publish   publishes the event that its parameters say, once, whatever is tried again
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from penstock.base.errors import SettingsInvalid
from penstock.envelope.context import inject
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.store.append.appends import Appends
from penstock.store.append.judging import Calling
from penstock.workflows.launch.functions import JobContext, make_job
from penstock.workflows.launch.registry import JOBS, Jobs

SOURCE = "penstock.workflows"
_PUBLISH: JsonObject = {
    "type": "object",
    "required": ["type"],
    "properties": {
        "type": {"type": "string"},
        "source": {"type": "string"},
        "payload": True,
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "additionalProperties": False,
}


def load_jobs(names: str) -> tuple[str, ...]:
    """Import the operator's modules, whose decorators register what is in them.

    What comes back are the folders of files named by their path: a process that runs one of their
    handlers must look there too.
    """
    folders: dict[str, None] = {}
    for name in filter(None, (text.strip() for text in names.split(","))):
        try:
            if name.endswith(".py"):
                folders[_reach(Path(name))] = None
            importlib.import_module(Path(name).stem if name.endswith(".py") else name)
        except Exception as error:
            raise SettingsInvalid(
                f"PENSTOCK_JOBS: expected a module that can be imported, found {name}: {error}",
                remedy="Name modules that Python finds, or paths of .py files.",
            ) from error
    return tuple(folders)


def _reach(path: Path) -> str:
    """The folder of a file, which Python looks into from now on."""
    if not path.is_file():
        raise FileNotFoundError(path)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    return folder


def own_jobs(appends: Appends) -> Jobs:
    """Every registered job, and ours."""

    def echo(job: JobContext) -> JsonObject:
        return job.parameters

    def publish(job: JobContext) -> JsonObject:
        said = job.parameters
        event: dict[str, JsonValue] = {
            "id": f"step-{job.idempotency_key}"[:128],
            "source": SOURCE,
            **said,
            "correlationId": job.correlation_id or job.workflow.workflow_run_id,
            "metadata": inject({}, job.workflow),
        }
        if job.causation_id is not None:
            event["causationId"] = job.causation_id
        # A definition may be anybody's: it may not speak for Penstock itself.
        store = appends.calling(Calling(job.tenant_id, operator=False))
        appended = store.append([event])
        return {"id": event["id"], "position": str(appended.after)}

    jobs = Jobs(lambda: (), beside=JOBS)
    jobs.add(make_job("penstock.echo", echo, inline=True))
    jobs.add(make_job("penstock.publish", publish, schema=_PUBLISH))
    return jobs
