"""Triggers kept as files: what they want, what is wrong with them, and what would change."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.base.errors import Fault, PenstockError
from penstock.triggers.check import check_spec
from penstock.triggers.files import Action, FilesInvalid, Item, Kind, plan, read_files

GOLD = """\
kind: Trigger
workflow: ship
name: gold orders
eventType: shop.order.placed
predicates:
  - path: $.payload.tier
    operator: equals
    value: gold
parameterTemplate:
  id: "{{ event.payload.id }}"
"""


def faults(*files: tuple[str, str], **said: Any) -> list[tuple[str, str]]:
    with pytest.raises(FilesInvalid) as caught:
        read_files(files, **said)
    return [(fault.pointer, fault.detail) for fault in caught.value.faults]


def test_a_trigger_is_read_from_a_file() -> None:
    (item,) = read_files([("gold.yml", GOLD)])

    assert (item.kind, item.name, item.file, item.line) == (
        Kind.TRIGGER, "ship/gold orders", "gold.yml", 1,
    )  # fmt: skip
    assert item.body == check_spec(item.body).wire()
    assert item.body["parameterTemplate"] == {"id": "{{ event.payload.id }}"}


def test_things_are_made_before_what_needs_them_whatever_the_files_say() -> None:
    text = GOLD + (
        "---\nkind: Schedule\nworkflow: ship\nname: nightly\ncron: 0 3 * * *\n"
        "---\nkind: Workflow\nslug: ship\n---\nkind: Service\nslug: mailer\n"
    )

    assert [(item.kind, item.name) for item in read_files([("all.yml", text)])] == [
        ("Service", "mailer"),
        ("Workflow", "ship"),
        ("Schedule", "ship/nightly"),
        ("Trigger", "ship/gold orders"),
    ]


def test_every_fault_names_its_file_and_line() -> None:
    broken = GOLD.replace("$.payload.tier", "$.payload[").replace("event.payload", "evnt.payload")

    found = faults(("a.yml", broken), ("b.yml", "kind: Trigger\nworkflow: x\nname: y\nevenType: z"))

    assert [where for where, _ in found] == ["a.yml:6", "a.yml:10", "b.yml:1", "b.yml:4"]
    assert found[0][1].startswith("/predicates/0/path: expected a JSONPath")
    assert "did you mean eventType?" in found[3][1]


@pytest.mark.parametrize(
    ("text", "where", "sentence"),
    [
        ("kind: Triger\n", "f:1", "one of Service, Workflow, Schedule, Trigger, found 'Triger'"),
        ("name: x\n", "f:1", "found None"),
        ("just text\n", "f:1", "document with `kind`"),
        ("kind: Trigger\nname: x\n", "f:1", "slug of a workflow"),
        ("kind: Trigger\nworkflow: x\n", "f:1", "expected a name"),
        ("kind: Workflow\n", "f:1", "expected a slug"),
        ("kind: Trigger\na: *b\n", "f:2", "aliases"),
        (GOLD + "---\n" + GOLD, "f:12", "once, found it at f:1"),
    ],
)
def test_a_document_that_cannot_be_meant_is_refused(text: str, where: str, sentence: str) -> None:
    ((place, detail),) = faults(("f", text))

    assert place == where
    assert sentence in detail


def test_a_sample_event_is_used_for_checking_and_not_kept() -> None:
    sample = "sampleEvent: {payload: {id: 1}}\n"

    (item,) = read_files([("f", GOLD + sample)])
    ((_, detail),) = faults(("f", GOLD + sample.replace("id:", "no:")))

    assert "sampleEvent" not in item.body
    assert "event.payload.id is undefined" in detail


def test_other_rooms_check_their_own_kinds() -> None:
    class Wrong(PenstockError):
        pass

    def check(body: Any) -> Any:
        if "steps" not in body:
            raise Wrong("no steps", faults=(Fault("/steps", "expected steps"),))
        return body | {"checked": True}

    good = "kind: Workflow\nslug: a\nsteps: []\n"

    (item,) = read_files([("f", good)], {Kind.WORKFLOW: check})

    assert item.body["checked"] is True
    assert faults(("f", "kind: Workflow\nslug: a"), checks={Kind.WORKFLOW: check}) == [
        ("f:1", "/steps: expected steps")
    ]


def changes(before: str, after: str, **said: Any) -> list[Any]:
    return plan(read_files([("now", before)]), read_files([("then", after)]), **said)


def test_what_is_there_as_wanted_is_unchanged() -> None:
    (change,) = changes(GOLD, GOLD + "maxAttempts: 5\n")

    assert (change.action, change.fields) == (Action.UNCHANGED, ())


def test_an_update_says_which_fields_change() -> None:
    (change,) = changes(GOLD, GOLD.replace("value: gold", "value: tin") + "maxConcurrency: 2\n")

    assert change.action is Action.UPDATE
    assert {field.field: (field.before, field.after) for field in change.fields} == {
        "predicates": (
            [{"type": "jsonPath", "path": "$.payload.tier", "operator": "equals", "value": "gold"}],
            [{"type": "jsonPath", "path": "$.payload.tier", "operator": "equals", "value": "tin"}],
        ),
        "maxConcurrency": (None, 2),
    }


def test_another_name_is_another_thing_and_the_old_one_goes_only_when_pruned() -> None:
    renamed = GOLD.replace("gold orders", "golden orders")

    assert [(c.action, c.name) for c in changes(GOLD, renamed)] == [
        ("create", "ship/golden orders")
    ]
    assert [(c.action, c.name) for c in changes(GOLD, renamed, prune=True)] == [
        ("create", "ship/golden orders"),
        ("delete", "ship/gold orders"),
    ]


def test_what_others_were_made_for_is_deleted_last() -> None:
    there = [Item(Kind.WORKFLOW, "ship", {}), Item(Kind.TRIGGER, "ship/a", {})]

    assert [c.kind for c in plan(there, [], prune=True)] == [Kind.TRIGGER, Kind.WORKFLOW]
