"""Write jobs for workflows, and try them without a worker.

    python examples/job_handlers.py

One job returns, one fails, one never returns. A worker finds jobs through the entry-point group
`penstock.jobs` of an installed package; here they are registered by their decorators alone.
"""

from __future__ import annotations

import threading

from penstock.envelope.envelope import JsonObject
from penstock.workflows.launch.errors import StepFailed
from penstock.workflows.launch.functions import JobContext, job
from penstock.workflows.launch.trial import try_job
from penstock.workflows.port import Failed, Succeeded


@job("count-words", schema={"type": "object", "required": ["text"]})
def count_words(job: JobContext) -> JsonObject:
    return {"words": len(str(job.parameters["text"]).split())}


@job("always-fails")
async def always_fails(job: JobContext) -> None:
    raise StepFailed(f"attempt {job.attempt} found nothing", retryable=False)


@job("never-returns")
def never_returns(_job: JobContext) -> None:
    threading.Event().wait()


def show(slug: str, parameters: JsonObject, timeout_s: float = 10.0) -> None:
    match try_job(slug, parameters, timeout_s=timeout_s):
        case Succeeded(output):
            print(f"{slug:<13} succeeded  {output}")
        case Failed(reason, detail):
            print(f"{slug:<13} {reason}  {detail}")


def main() -> None:
    show("count-words", {"text": "an event is a fact"})
    show("count-words", {})
    show("always-fails", {})
    show("never-returns", {}, timeout_s=0.2)
    show("nobody", {})


if __name__ == "__main__":
    main()
