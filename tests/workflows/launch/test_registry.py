"""A job is found by its name, wherever it was registered, and never runs unless it was."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest
from tests.workflows.launch import handlers

from penstock.workflows.launch.errors import JobInvalid
from penstock.workflows.launch.functions import Command, Job, JobContext, job, make_job
from penstock.workflows.launch.registry import GROUP, JOBS, Jobs

COMMAND = Command("listed", ("true",))


def offers(**named: str) -> Jobs:
    return Jobs(lambda: [EntryPoint(name, value, GROUP) for name, value in named.items()])


def test_a_decorated_function_is_a_job_and_still_a_function() -> None:
    @job("test.decorated", schema={"type": "object"})
    def double(given: JobContext) -> int:
        return 2 * int(str(given.parameters["n"]))

    found = JOBS.find("test.decorated")

    assert isinstance(found, Job)
    assert found.handler is double


def test_installed_packages_offer_jobs(caplog: pytest.LogCaptureFixture) -> None:
    here = "tests.workflows.launch"
    book = offers(
        plus=f"{here}.handlers:add",
        command=f"{here}.test_registry:COMMAND",
        module=f"{here}.handlers",
        broken="nowhere.at.all:thing",
        odd=f"{here}.handlers:__name__",
    )

    assert book.slugs() == ["listed", "plus"]
    plus = book.find("plus")
    assert isinstance(plus, Job)
    assert plus.handler is handlers.add
    assert book.find("broken") is None
    assert "nowhere.at.all:thing" in caplog.text


def test_one_name_is_one_job() -> None:
    book = Jobs(lambda: ())
    book.add(make_job("a", handlers.add))
    book.add(make_job("a", handlers.add))

    with pytest.raises(JobInvalid, match="found two"):
        book.add(make_job("a", handlers.fail))


@pytest.mark.parametrize("slug", ["", "with space", "-first", "ü", "x" * 201, "a/b"])
def test_a_name_that_no_definition_could_say_is_refused(slug: str) -> None:
    with pytest.raises(JobInvalid):
        make_job(slug, handlers.add)


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(JobInvalid, match="JSON Schema"):
        make_job("a", handlers.add, schema={"type": "nonsense"})


def test_an_awaited_handler_cannot_be_inline() -> None:
    with pytest.raises(JobInvalid, match="plain function"):
        make_job("a", handlers.add_later, inline=True)
