"""Lend a book of jobs, good and bad, and the executors that run them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.workflows.launch import handlers

from penstock.workflows.launch.functions import JobContext, make_job
from penstock.workflows.launch.in_process import InProcess
from penstock.workflows.launch.registry import Jobs

NUMBERS = {
    "type": "object",
    "required": ["numbers"],
    "properties": {"numbers": {"type": "array", "items": {"type": "number"}}},
}


@pytest.fixture
def jobs() -> Jobs:
    """Every function of handlers.py that takes a job, under its own name."""
    book = Jobs(lambda: ())
    for name, handler in vars(handlers).items():
        if getattr(handler, "__module__", "") == handlers.__name__ and name != "published":
            schema = NUMBERS if name.startswith("add") else None
            book.add(make_job(name, handler, schema=schema))  # type: ignore[arg-type]
    book.add(make_job("quick", _quick, inline=True))
    return book


def _quick(job: JobContext) -> object:
    if job.parameters.get("fails"):
        raise RuntimeError("quickly failed")
    return handlers.published()


@pytest.fixture
def inside(jobs: Jobs) -> Iterator[InProcess]:
    made = InProcess(jobs, abandoned_max=4)
    yield made
    made.close()
