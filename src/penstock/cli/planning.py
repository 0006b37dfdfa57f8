"""Compare what files want with what a server has, and make it so, one thing at a time.

    files ──▶ wanted ─┐
    server ─▶ there ──┴─ plan ──▶ changes ── carry_out ──▶ the API, each against the version read

Services come first and triggers last, since they name each other in that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from penstock.base.errors import PenstockError
from penstock.base.faults import form_faults
from penstock.cli.fields import rows, text
from penstock.cli.finding import TRIGGERS, full_name, path_of, read_texts, version_of
from penstock.cli.refused import Refused
from penstock.envelope.envelope import JsonObject
from penstock.triggers.files import Action, Change, Check, Item, Kind, plan, read_files
from penstock.triggers.trigger import TriggerSpec
from penstock.workflows.definition import WorkflowDefinition
from penstock.workflows.documents import CHECKS
from penstock.workflows.errors import WorkflowInvalid
from penstock.workflows.forms import model_wire
from penstock.workflows.schedule import ScheduleSpec

if TYPE_CHECKING:
    from penstock.cli.client import Client

_LISTS: Final = {
    Kind.SERVICE: ("/workflow-services", "services"),
    Kind.WORKFLOW: ("/workflows", "workflows"),
    Kind.SCHEDULE: ("/workflow-schedules", "schedules"),
    Kind.TRIGGER: (TRIGGERS, "triggers"),
}


@dataclass(frozen=True, slots=True)
class There:
    """A thing as the server has it: normalised like one from a file, and as it was shown."""

    item: Item
    shown: JsonObject


@dataclass(frozen=True, slots=True)
class Planned:
    """What is to be done, and to what."""

    changes: list[Change]
    there: dict[tuple[Kind, str], There]

    @property
    def due(self) -> list[Change]:
        """The changes that change something."""
        return [each for each in self.changes if each.action is not Action.UNCHANGED]


def make_plan(client: Client, path: Path, *, prune: bool) -> Planned:
    """What to do so that the server has what the files want.

    Pruning removes what no file names, of the kinds that files name.
    """
    wanted = read_files(read_texts(path), _checks())
    if not wanted:
        raise Refused(
            "files_invalid", f"expected documents at {path}, found none",
            "Name a YAML file, or a folder with some.",
        )  # fmt: skip
    there: dict[tuple[Kind, str], There] = {}
    for kind in Kind:
        named = {item.name for item in wanted if item.kind is kind}
        if named:
            _add(there, kind, client, None if prune else named)
    changes = plan([each.item for each in there.values()], wanted, prune=prune)
    _require_workflows(client, wanted)
    return Planned(changes, there)


def carry_out(client: Client, change: Change, there: There | None) -> None:
    """Make one change; Refused when the thing is no longer what the plan saw."""
    if change.action is Action.DELETE and there is not None:
        _delete(client, change.kind, there.shown)
    elif change.action is Action.CREATE and change.wanted is not None:
        _create(client, change.wanted)
    elif change.action is Action.UPDATE and change.wanted is not None and there is not None:
        _update(client, change, change.wanted, there.shown)


def _add(
    there: dict[tuple[Kind, str], There], kind: Kind, client: Client, named: set[str] | None
) -> None:
    """Add the things of one kind; `named` are those that matter, None: all of them."""
    path, member = _LISTS[kind]
    for shown in rows(client.get(path), member):
        name = full_name(shown) if kind in (Kind.TRIGGER, Kind.SCHEDULE) else text(shown, "slug")
        if (kind, name) in there and (named is None or name in named):
            raise Refused(
                "ambiguous",
                f"expected one {kind} called {name!r} on the server, found several",
                "Delete or rename all but one: files know things by their names.",
            )
        there[kind, name] = There(Item(kind, name, _normal(kind, shown)), shown)


def _normal(kind: Kind, shown: JsonObject) -> JsonObject:
    """The body that a file would have for what the server shows."""
    forms: dict[Kind, type[BaseModel]] = {
        Kind.TRIGGER: TriggerSpec, Kind.SCHEDULE: ScheduleSpec, Kind.WORKFLOW: WorkflowDefinition,
    }  # fmt: skip
    form = forms.get(kind) or _service_form()
    fields = {field.alias or name for name, field in form.model_fields.items()}
    fields = (fields - {"status"}) | {"slug"} if kind is Kind.SERVICE else fields
    body: JsonObject = {name: value for name, value in shown.items() if name in fields}
    try:
        return _checks()[kind](body)
    except PenstockError:
        return body  # a rule that came later; the difference will show


def _checks() -> dict[Kind, Check]:
    from penstock.triggers.files import check_trigger

    return {Kind.TRIGGER: check_trigger, Kind.SERVICE: _check_service, **CHECKS}


def _check_service(body: JsonObject) -> JsonObject:
    said = {name: value for name, value in body.items() if name != "slug"}
    try:
        form = _service_form().model_validate(said, by_alias=True, by_name=False)
    except ValidationError as error:
        raise WorkflowInvalid(form_faults(error, said)) from None
    wire = model_wire(form)
    wire.pop("status", None)  # found out by calling it, not decided by files
    return {"slug": body.get("slug"), **wire}


def _service_form() -> type[BaseModel]:
    # The API is slow to load; only files that describe services need its form.
    from penstock.api.handlers.services import NewService

    return NewService


def _require_workflows(client: Client, wanted: Sequence[Item]) -> None:
    """Refuse triggers and schedules of workflows that are neither there nor in the files."""
    named = {item.name for item in wanted if item.kind is Kind.WORKFLOW}
    users = [item for item in wanted if item.kind in (Kind.TRIGGER, Kind.SCHEDULE)]
    users = [item for item in users if item.name.partition("/")[0] not in named]
    if not users:
        return
    known = {text(each, "slug") for each in rows(client.get("/workflows"), "workflows")}
    for item in users:
        slug = item.name.partition("/")[0]
        if slug not in known:
            raise Refused(
                "not_found",
                f"{item.file}:{item.line}: expected a workflow {slug!r}, found none on the server"
                " and none in the files",
                "Correct `workflow`, or describe that workflow beside it.",
            )


def _create(client: Client, item: Item) -> None:
    slug = quote(item.name.partition("/")[0], safe="")
    if item.kind is Kind.SERVICE:
        client.put(f"/workflow-services/{slug}", _without_slug(item.body))
    elif item.kind is Kind.WORKFLOW:
        client.post("/workflows", item.body)
    else:
        word = "schedules" if item.kind is Kind.SCHEDULE else "triggers"
        client.post(f"/workflows/{slug}/{word}", item.body)


def _update(client: Client, change: Change, wanted: Item, shown: JsonObject) -> None:
    said: JsonObject = {field.field: field.after for field in change.fields}
    if change.kind is Kind.SERVICE:
        client.put(_path(change.kind, shown), _without_slug(wanted.body))
    elif change.kind is Kind.TRIGGER:
        client.patch(path_of(shown), said, version_of(shown))
    else:
        client.patch(_path(change.kind, shown), said, version_of(shown))


def _delete(client: Client, kind: Kind, shown: JsonObject) -> None:
    if kind is Kind.SERVICE:
        client.delete(_path(kind, shown))
    else:
        place = path_of(shown) if kind is Kind.TRIGGER else _path(kind, shown)
        client.delete(place, version_of(shown))


def _path(kind: Kind, shown: JsonObject) -> str:
    key = text(shown, "id" if kind is Kind.SCHEDULE else "slug")
    return f"{_LISTS[kind][0]}/{quote(key, safe='')}"


def _without_slug(body: JsonObject) -> JsonObject:
    return {name: value for name, value in body.items() if name != "slug" and value is not None}
