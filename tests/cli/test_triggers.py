"""Triggers on the command line, against a real server: look, make, ask why, try, plan and apply."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.support import ADMIN, Server, database_of, event, opened, running, settings_for
from tests.cli.conftest import Run

from penstock.base.on_postgres import EmbeddedPostgres

_numbers = itertools.count()

STEP = "steps: [{id: one, name: One, type: function, handler: noop}]"
Write = Callable[..., Path]


@pytest.fixture(scope="module")
def served(
    server: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A real server for the tests of this module."""
    folder = tmp_path_factory.mktemp("served")
    with (
        database_of(server, template) as database,
        opened(settings_for(database, folder)) as house,
        running(house, database) as found,
    ):
        yield found


@pytest.fixture
def live(served: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server that the command line talks to."""
    monkeypatch.setenv("PENSTOCK_URL", served.url)
    monkeypatch.setenv("PENSTOCK_TOKEN", ADMIN)
    return served


@pytest.fixture
def slug(live: Server) -> str:
    """A workflow of its own for a test."""
    name = f"flow-{next(_numbers)}"
    step = {"id": "one", "name": "One", "type": "function", "handler": "noop"}
    made = live.admin.post("/workflows", json={"slug": name, "name": "A flow", "steps": [step]})
    assert made.status_code == 201, made.text
    return name


@pytest.fixture
def write(home: Path) -> Write:
    """Write a file of documents."""

    def put(*documents: str, name: str = "things.yaml") -> Path:
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n---\n".join(documents))
        return file

    return put


def trigger(slug: str, name: str = "on update", *more: str) -> str:
    """A document that wants the events of its own test."""
    return "\n".join(
        (
            "kind: Trigger",
            f"workflow: {slug}",
            f"name: {name}",
            "eventType: metastore.record.updated",
            "predicates:",
            f"  - {{path: $.payload.owner, operator: equals, value: {slug}}}",
            *more,
        )
    )


def publish(live: Server, owner: str, **payload: Any) -> str:
    key = f"cli-{next(_numbers)}"
    body = event(id=key, payload={"namespace": "n", "key": "k", "owner": owner, **payload})
    assert live.admin.post("/v1/events", json=body).status_code == 202
    return key


def judge(live: Server) -> None:
    while live.house.trigger_host.run_pass().number is not None:
        pass


def test_a_trigger_is_made_from_a_file_listed_shown_and_disabled(
    live: Server, run: Run, slug: str, write: Write
) -> None:
    made = run("triggers", "create", "--file", str(write(trigger(slug))))
    assert (made.code, made.out.split()[0]) == (0, "created")

    listed = run("triggers", "list", "--workflow", slug)
    key = listed.out.split()[0]
    assert listed.out.rstrip().endswith(f"{slug}/on update")
    for name in (key, f"{slug}/on update"):
        shown = run("triggers", "show", name, "--json")
        assert (shown.json["id"], shown.json["status"]) == (key, "active")
    assert "eventType" in run("triggers", "show", key).out

    refused = run("triggers", "disable", key)
    assert (refused.code, "--yes" in refused.err) == (2, True)
    done = run("triggers", "disable", key, "--yes")
    assert (done.code, done.out.split()[0]) == (0, "disabled")
    assert (
        run("triggers", "list", "--status", "disabled", "--json").json["triggers"][0]["id"] == key
    )
    versions = run("triggers", "show", key, "--versions", "--json").json["versions"]
    assert [each["status"] for each in versions] == ["active", "disabled"]
    assert run("triggers", "disable", key, "--yes").out.split()[0] == "unchanged"


def test_a_trigger_says_what_its_file_says_after_an_update(
    live: Server, run: Run, slug: str, write: Write
) -> None:
    run("triggers", "create", "--file", str(write(trigger(slug, "on update", "maxConcurrency: 2"))))

    changed = run(
        "triggers", "update", f"{slug}/on update",
        "--file", str(write(trigger(slug, "on update", "description: why"))), "--json",
    )  # fmt: skip

    found = changed.json
    assert (found["version"], found["description"], found["maxConcurrency"]) == (2, "why", None)


def test_a_file_with_a_fault_names_its_line_and_asks_nobody(
    live: Server, run: Run, slug: str, write: Write
) -> None:
    file = write(trigger(slug, "bad", "throttleCount: 5"), name="bad.yaml")

    found = run("triggers", "create", "--file", str(file))

    assert found.code == 1
    assert "files_invalid" in found.err
    assert "bad.yaml:" in found.err
    assert run("triggers", "list", "--workflow", slug).out == ""


def test_a_name_that_several_have_or_nobody_is_refused(
    live: Server, run: Run, slug: str, write: Write
) -> None:
    file = str(write(trigger(slug, "twin")))
    run("triggers", "create", "--file", file)
    run("triggers", "create", "--file", file)

    assert "ambiguous" in run("triggers", "show", "twin").err
    assert "not_found" in run("triggers", "show", "nobody-is-called-so").err
    assert "ambiguous" in run("plan", file).err
    for each in live.admin.get(f"/workflows/{slug}/triggers").json()["data"]["triggers"]:
        live.admin.delete(f"/workflows/{slug}/triggers/{each['id']}")


def test_why_answers_with_the_sentence_the_comparisons_and_the_history(
    live: Server, run: Run, slug: str, write: Write
) -> None:
    run("triggers", "create", "--file", str(write(trigger(slug))))
    judge(live)
    yes, no = publish(live, slug), publish(live, "another")
    judge(live)
    name = f"{slug}/on update"

    launched, filtered = run("why", yes, name), run("why", no, name)

    assert launched.out.startswith("launched at launch, run ")
    assert f'yes  $.payload.owner equals "{slug}"; found "{slug}"' in launched.out
    assert filtered.out.startswith("not started: $.payload.owner equals")
    assert "no   $.payload.owner equals" in filtered.out
    assert 'found "another"' in filtered.out
    again = run("why", yes, name, "--recompute", "--json").json
    assert again["recomputed"] is True
    assert again["history"] == run("why", yes, name, "--json").json["history"]
    listed = run("triggers", "deliveries", name, "--status", "launched")
    assert yes in listed.out
    assert run("why", "nobody", name).code == 1


def test_a_back_test_of_a_live_trigger_equals_its_record_and_a_draft_says_what_would_have_been(
    live: Server, run: Run, slug: str, write: Write
) -> None:
    file = write(trigger(slug, "on update", 'parameterTemplate: {n: "{{ event.payload.n }}"}'))
    begins = live.house.history.head().position
    run("triggers", "create", "--file", str(file))
    judge(live)
    for n in range(3):
        publish(live, slug, n=n)
    judge(live)

    recorded = run("backtest", f"{slug}/on update")
    draft = run("backtest", "--file", str(file), "--from", str(begins))

    assert (recorded.code, recorded.out.splitlines()[0]) == (0, "equal  to the record")
    assert recorded.out.count("\nlaunch  ") == 3
    assert run("backtest", f"{slug}/on update", "--json").json["launches"] == 3
    none = run("backtest", f"{slug}/on update", "--from", "9223372036854775807")
    assert none.code == 1
    tried = run("backtest", f"{slug}/on update", "--as-draft", "--from", str(begins), "--json")
    assert (tried.json["mode"], tried.json["launches"]) == ("hypothetical", 3)
    assert draft.code == 0
    figures = dict(line.split() for line in draft.out.splitlines()[:8])
    assert (figures["matches"], figures["launches"]) == ("3", "3")
    assert draft.out.count("\nlaunch  ") == 3
    assert '{"n":2}' in draft.out
    assert run("backtest").code == 2
    few = run("backtest", "--file", str(file), "--from", str(begins), "--events-max", "2")
    assert "not all of it" in few.err


def test_a_plan_shows_the_difference_and_what_it_would_have_done_and_changes_nothing(
    live: Server, run: Run, slug: str, write: Write
) -> None:
    judge(live)
    for n in range(4):
        publish(live, slug, n=n)
    judge(live)
    big = "  - {path: $.payload.n, operator: gte, value: 2}"
    file = str(write(trigger(slug, "on update", big)))

    created = run("plan", file)
    assert created.code == 0
    assert f"+  create  Trigger  {slug}/on update" in created.out
    assert "would have started 2 runs in 7 days, at most 2 a minute" in created.out
    assert "1 to create; 0 unchanged" in created.err
    assert run("triggers", "list", "--workflow", slug).out == ""

    run("apply", file, "--yes")
    assert "nothing to do; 1 unchanged" in run("plan", file).err
    wider = str(write(trigger(slug, "on update", "throttleCount: 3", "throttleWindowMs: 86400000")))
    changed = run("plan", wider)
    assert f"~  update  Trigger  {slug}/on update" in changed.out
    assert "throttleCount  null -> 3" in changed.out
    assert "would have started 3 runs in 7 days instead of 2 (+50 %)" in changed.out
    found = run("plan", wider, "--json").json["changes"][0]
    assert (found["backtest"]["launchesBefore"], found["backtest"]["launchesAfter"]) == (2, 3)
    assert {each["field"] for each in found["fields"]} == {
        "predicates", "throttleCount", "throttleWindowMs",
    }  # fmt: skip
    assert "backtest" not in run("plan", wider, "--no-backtest", "--json").json["changes"][0]


def test_applying_makes_what_files_describe_in_order_and_again_changes_nothing(
    live: Server, run: Run, write: Write, home: Path
) -> None:
    name = f"whole-{next(_numbers)}"
    write(trigger(name), name="all/triggers.yaml")
    write(
        f"kind: Workflow\nslug: {name}\nname: Whole\n{STEP}",
        f'kind: Schedule\nworkflow: {name}\nname: nightly\ncron: "0 3 * * *"',
        f"kind: Service\nslug: {name}\nbaseUrl: https://billing.example",
        name="all/deep/flow.yml",
    )

    asked = run("apply", "all")
    done = run("apply", "all", "--yes")
    again = run("apply", "all", "--yes")

    assert (asked.code, "--yes" in asked.err) == (2, True)
    assert done.code == 0, done.err
    kinds = [line.split()[2] for line in done.out.splitlines() if line.startswith("done")]
    assert kinds == ["Service", "Workflow", "Schedule", "Trigger"]
    assert (again.code, "nothing to do; 4 unchanged" in again.err) == (0, True)

    write(trigger(name, "another"), name="all/triggers.yaml")
    write(
        f"kind: Workflow\nslug: {name}\nname: Renamed\n{STEP}",
        f'kind: Schedule\nworkflow: {name}\nname: nightly\ncron: "0 4 * * *"',
        f"kind: Service\nslug: {name}\nbaseUrl: https://other.example",
        name="all/deep/flow.yml",
    )
    changed = run("apply", "all", "--yes", "--json").json
    words = {(each["kind"], each["action"]) for each in changed["changes"]}
    assert words == {
        ("Service", "update"), ("Workflow", "update"), ("Schedule", "update"),
        ("Trigger", "create"),
    }  # fmt: skip
    assert changed["applied"] == 4
    assert "nothing to do" in run("plan", "all").err


def test_pruning_deletes_what_no_file_names_of_the_same_kinds_only(
    live: Server, run: Run, slug: str, write: Write
) -> None:
    run("triggers", "create", "--file", str(write(trigger(slug, "old"), name="old.yaml")))
    file = str(write(trigger(slug, "new")))

    kept = run("plan", file, "--json", "--no-backtest").json["changes"]
    pruned = run("plan", file, "--prune", "--json").json["changes"]

    assert [each["action"] for each in kept] == ["create"]
    gone = next(each for each in pruned if each["name"] == f"{slug}/old")
    assert gone["action"] == "delete"
    assert "would not have been started" in gone["backtest"]["sentence"]
    assert {each["kind"] for each in pruned} == {"Trigger"}
    assert run("apply", file, "--prune", "--yes").code == 0
    assert [each["name"] for each in run("triggers", "list", "--json").json["triggers"]] == ["new"]
    assert live.admin.get(f"/workflows/{slug}").status_code == 200


def test_a_plan_for_a_workflow_that_nobody_has_is_refused(
    live: Server, run: Run, write: Write
) -> None:
    found = run("plan", str(write(trigger("nobody-has-it"))))

    assert found.code == 1
    assert "expected a workflow 'nobody-has-it'" in found.err
    assert "things.yaml:1" in found.err


def test_a_plan_of_nothing_is_refused(live: Server, run: Run, home: Path) -> None:
    (home / "empty").mkdir()

    assert run("plan", "empty").code == 1
    assert run("plan", "nowhere").code == 2


def test_a_trigger_and_a_source_are_paused_and_resumed(
    live: Server, run: Run, slug: str, write: Write
) -> None:
    run("triggers", "create", "--file", str(write(trigger(slug))))
    judge(live)
    name = f"{slug}/on update"

    paused = run("pause", "trigger", name, "--for", "10m", "--reason", "a migration")
    publish(live, slug)
    judge(live)

    assert paused.out.startswith(f"paused  {name}  until 20")
    found = run("triggers", "deliveries", name, "--json").json["data"]
    assert [each["status"] for each in found] == ["pending"]
    assert run("resume", "trigger", name, "--skip").out == f"resumed  {name}\n"
    assert run("resume", "trigger", name).out == f"not paused  {name}\n"
    judge(live)
    found = run("triggers", "deliveries", name, "--json").json["data"]
    assert [each["reason"] for each in found] == ["skipped_by_operator"]

    assert run("pause", "source", "some.source").out == "paused  some.source  until resumed\n"
    assert run("resume", "source", "some.source", "--json").json["changed"] is True
    assert run("pause", "source", "some.source", "--for", "soon").code == 2
    both = ("--for", "1h", "--until", "2199-01-01T00:00:00Z")
    assert run("pause", "source", "some.source", *both).code == 2


def test_reading_personal_data_is_refused_or_warned_of_wherever_a_trigger_is_looked_at(
    live: Server, run: Run, slug: str, write: Write
) -> None:
    kind = f"shop.guest.n{next(_numbers)}"
    fields = {"id": {"type": "string"}, "email": {"type": "string", "x-pii": {"subject": "/id"}}}
    schema = {"type": "object", "properties": fields}
    made = live.admin.post("/admin/event-schemas", json={"eventType": kind, "schema": schema})
    assert made.status_code == 201, made.text
    head = f"kind: Trigger\nworkflow: {slug}\nname: greet\neventType: {kind}\n"
    clause = "{path: $.payload.email, operator: equals, value: a@b.c}"
    blind = str(write(f"{head}predicates: [{clause}]", name="blind.yaml"))
    passing = str(write(head + 'parameterTemplate: {to: "{{ event.payload.email }}"}'))

    refused = run("triggers", "create", "--file", blind)
    assert refused.code == 1
    assert "trigger_reads_personal" in refused.err
    assert "/predicates/0/path" in refused.err
    for tried in (run("plan", blind), run("backtest", "--file", blind)):
        assert tried.code == 0
        assert "warning  /predicates/0/path: expected a field that can be compared" in tried.err
        assert "such a trigger is refused" in tried.err

    handed = f"warning  /parameterTemplate: /email is personal in {kind}: the run is handed its"
    assert handed in run("triggers", "create", "--file", passing).err
    judge(live)
    told = {"type": kind, "source": "shop.web", "payload": {"id": "g-1", "email": "a@b.c"}}
    told["id"] = f"evt-{kind}"
    assert live.admin.post("/v1/append", json={"events": [told]}).status_code == 200
    judge(live)
    assert handed in run("why", f"evt-{kind}", f"{slug}/greet").err
