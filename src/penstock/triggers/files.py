"""Read triggers and workflows that are kept as YAML in a repository, and plan what to change.

    kind: Trigger            files ── read_files ──▶ Items ── plan ──▶ create, update, unchanged
    workflow: nightly        what is there already ────────────┘       (delete, if asked to prune)
    name: …

Pure: texts in, values out. A document belongs to what its kind and name say, not to its file, so
files may be moved and split. Other rooms give the checks of their kinds (`checks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from penstock.base.errors import Fault, PenstockError
from penstock.envelope.codec import canonical
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.triggers.check import check_spec
from penstock.triggers.yaml_text import Read, YamlInvalid, read_yaml

FAULTS_MAX: Final = 50


class Kind(StrEnum):
    """What a document is about, in the order in which things are made."""

    SERVICE = "Service"
    WORKFLOW = "Workflow"
    SCHEDULE = "Schedule"
    TRIGGER = "Trigger"


class Action(StrEnum):
    """What a plan does with a thing."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing, as a file wants it or as it is now."""

    kind: Kind
    name: str  # a slug; of a trigger or schedule workflow/name
    body: JsonObject  # normalised, so that equal bodies mean the same
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of a thing, before and after; None for what is not there."""

    field: str
    before: JsonValue
    after: JsonValue


@dataclass(frozen=True, slots=True)
class Change:
    """What a plan does with one thing."""

    action: Action
    kind: Kind
    name: str
    fields: tuple[FieldChange, ...]
    wanted: Item | None  # None when it is to be deleted


class Made(NamedTuple):
    """One document that says what it should."""

    kind: Kind
    name: str
    body: JsonObject


class FilesInvalid(PenstockError):
    """Files that cannot be applied; `faults` names file and line."""

    code = "files_invalid"
    remedy = "Correct the lines named in `errors`; nothing was changed."

    def __init__(self, faults: Sequence[Fault]) -> None:
        first = faults[0]
        more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
        super().__init__(
            f"{first.pointer}: {first.detail}{more}", faults=tuple(faults[:FAULTS_MAX])
        )


# A check gives the normalised body, or raises a PenstockError whose faults point into it.
Check: TypeAlias = Callable[[JsonObject], JsonObject]


def check_trigger(body: JsonObject) -> JsonObject:
    """The spec of a Trigger document; a `sampleEvent` beside it is used and not kept."""
    said = {name: value for name, value in body.items() if name != "sampleEvent"}
    return check_spec(said, body.get("sampleEvent")).wire()


def read_files(
    files: Iterable[tuple[str, str]], checks: Mapping[Kind, Check] | None = None
) -> list[Item]:
    """What files want, in the order in which it is made; FilesInvalid with all that is wrong.

    `files` are names and texts. Without a check for its kind a body is taken as it stands.
    """
    known: dict[Kind, Check] = {Kind.TRIGGER: check_trigger, **(checks or {})}
    faults: list[Fault] = []
    items: dict[tuple[Kind, str], Item] = {}
    for file, text in files:
        for read in _documents(file, text, faults):
            item = _item(file, read, known, faults)
            if item is None:
                continue
            there = items.setdefault((item.kind, item.name), item)
            if there is not item:
                detail = (
                    f"expected {item.kind} {item.name} once, found it at {there.file}:{there.line}"
                )
                faults.append(Fault(f"{file}:{read.line}", detail))
    if faults:
        raise FilesInvalid(faults)
    order = list(Kind)
    return sorted(items.values(), key=lambda item: (order.index(item.kind), item.name))


def _documents(file: str, text: str, faults: list[Fault]) -> list[Read]:
    try:
        return read_yaml(text)
    except YamlInvalid as error:
        faults.append(Fault(f"{file}:{error.line}", error.detail))
        return []


def _item(file: str, read: Read, checks: Mapping[Kind, Check], faults: list[Fault]) -> Item | None:
    made = _made(read.value, checks)
    if isinstance(made, Made):
        return Item(made.kind, made.name, made.body, file, read.line)
    for fault in made:
        where = f"{fault.pointer}: " if fault.pointer else ""
        faults.append(Fault(f"{file}:{read.line_of(fault.pointer)}", f"{where}{fault.detail}"))
    return None


def _made(value: JsonValue, checks: Mapping[Kind, Check]) -> Made | tuple[Fault, ...]:
    if not isinstance(value, dict):
        return (Fault("", "expected a document with `kind`, found none"),)
    body = dict(value)
    said = body.pop("kind", None)
    if said not in set(Kind):
        return (Fault("/kind", f"expected one of {', '.join(Kind)}, found {said!r}"),)
    kind = Kind(str(said))
    name = _name(kind, body)
    if isinstance(name, Fault):
        return (name,)
    try:
        return Made(kind, name, checks[kind](body) if kind in checks else body)
    except PenstockError as error:
        return error.faults or (Fault("", error.detail),)


def _name(kind: Kind, body: JsonObject) -> str | Fault:
    """The name of a document; `workflow` is taken out of a body that belongs to one."""
    if kind in (Kind.WORKFLOW, Kind.SERVICE):
        slug = body.get("slug")
        return slug if isinstance(slug, str) and slug else Fault("/slug", "expected a slug")
    workflow, name = body.pop("workflow", None), body.get("name")
    if not isinstance(workflow, str) or not workflow:
        return Fault("/workflow", "expected the slug of a workflow, found none")
    if not isinstance(name, str) or not name:
        return Fault("/name", "expected a name, found none")
    return f"{workflow}/{name}"


def plan(current: Sequence[Item], wanted: Sequence[Item], *, prune: bool = False) -> list[Change]:
    """What to do so that what is wanted is there; `prune` also removes what no file names."""
    there = {(item.kind, item.name): item for item in current}
    changes = [_change(there.get((item.kind, item.name)), item) for item in wanted]
    if prune:
        named = {(item.kind, item.name) for item in wanted}
        order = list(Kind)
        gone = [item for item in current if (item.kind, item.name) not in named]
        # What others are made for goes last.
        gone.sort(key=lambda item: (-order.index(item.kind), item.name))
        changes += [Change(Action.DELETE, item.kind, item.name, (), None) for item in gone]
    return changes


def _change(before: Item | None, after: Item) -> Change:
    old = {} if before is None else before.body
    fields = tuple(
        FieldChange(name, old.get(name), after.body.get(name))
        for name in dict.fromkeys((*after.body, *old))
        if canonical(old.get(name)) != canonical(after.body.get(name))
    )
    changed = Action.UPDATE if fields else Action.UNCHANGED
    action = Action.CREATE if before is None else changed
    return Change(action, after.kind, after.name, fields, after)
