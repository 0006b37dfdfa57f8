"""Fill in the `{{ a.b.c }}` of a step's input from what its run knows so far.

    "{{ steps.load.output.rows }}"         ─▶ 42, the value itself: a whole text keeps the type
    "{{ parameters.name }}: {{ item.id }}" ─▶ "orders: 7", text; what is no text is written as JSON
    "{{ steps.load.output.nothing }}"      ─▶ Unresolved, naming the path

A path is a root, then names and list places: `a.b[0].c` or `a.b.0.c`. There are no filters, no
conditions and no loops, so filling in ends, is fast, and says exactly what was read. A null that is
there is a value; a key that is not there is Unresolved. Templates are compiled once a version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from penstock.base.pointers import pointer
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.workflows.run import RunState

Path: TypeAlias = tuple[str, ...]

PATH_CHARACTERS_MAX = 500

_NOTHING: JsonObject = {}
# No braces inside, so that a text full of them is read in one go.
_HOLE = re.compile(r"\{\{([^{}]*)\}\}")
_NAME = r"[A-Za-z0-9_$-]+"
_PATH = re.compile(rf"\s*{_NAME}(?:\.{_NAME}|\[[0-9]+\])*\s*")
_PART = re.compile(_NAME)


class Unresolved(LookupError):
    """A template names what is not there."""

    def __init__(self, path: Path, known: int) -> None:
        said, there = ".".join(path), ".".join(path[:known])
        where = f"nothing there below {there}" if known else "nothing by that name"
        super().__init__(f"expected a value at {said}, found {where}")
        self.path = said


class Scope(NamedTuple):
    """What the templates of one step can see."""

    run: RunState
    workflow: str = ""
    step: JsonObject = _NOTHING
    item: JsonValue = None
    fanout: JsonObject = _NOTHING


Get: TypeAlias = Callable[[Scope], JsonValue]
Look: TypeAlias = Callable[[Path], Get]  # how a path is read; schedules have roots of their own


@dataclass(frozen=True, slots=True)
class Hole:
    """One `{{ … }}`: where it stands, and the path in it; None when it is no path."""

    pointer: str
    text: str
    path: Path | None


def parse_path(text: str) -> Path | None:
    """The names of a path, list places included; None when it is none."""
    is_path = len(text) <= PATH_CHARACTERS_MAX and _PATH.fullmatch(text)
    return tuple(_PART.findall(text)) if is_path else None


def holes(template: JsonValue, place: str = "") -> Iterator[Hole]:
    """Every template in a tree; one that is not closed is a hole without a path."""
    if isinstance(template, str):
        rest = _HOLE.sub(" ", template)
        for inner in _HOLE.findall(template):
            yield Hole(place, inner.strip()[:80], parse_path(inner))
        if "{{" in rest:
            yield Hole(place, rest[rest.index("{{") :][:80], None)
    elif isinstance(template, dict):
        for key, value in template.items():
            yield from holes(value, place + pointer([key]))
    elif isinstance(template, list):
        for number, value in enumerate(template):
            yield from holes(value, f"{place}/{number}")


def compile_template(template: JsonValue, look: Look | None = None) -> Get:
    """A function that fills the template in; what has no holes is given as it is."""
    look = look or look_in_run
    if isinstance(template, str):
        return _compile_text(template, look)
    if next(holes(template), None) is None:
        return lambda _scope: template
    if isinstance(template, dict):
        fields = [(key, compile_template(value, look)) for key, value in template.items()]
        return lambda scope: {key: get(scope) for key, get in fields}
    if isinstance(template, list):
        items = [compile_template(value, look) for value in template]
        return lambda scope: [get(scope) for get in items]
    return lambda _scope: template


def _compile_text(template: str, look: Look) -> Get:
    parts = _HOLE.split(template)  # text, hole, text, hole, …, text
    if len(parts) == 1:
        return lambda _scope: template
    gets = [look(parse_path(part) or (part,)) for part in parts[1::2]]
    if len(gets) == 1 and not parts[0].strip() and not parts[2].strip():
        return gets[0]
    texts = parts[0::2]

    def fill(scope: Scope) -> str:
        said = [texts[0]]
        for get, text in zip(gets, texts[1:], strict=True):
            value = get(scope)
            said += (value if isinstance(value, str) else encode(value).decode(), text)
        return "".join(said)

    return fill


def walk(start: JsonValue, path: Path, known: int) -> JsonValue:
    """The value that the rest of a path leads to, when `known` names of it are already walked."""
    value = start
    for at in range(known, len(path)):
        name = path[at]
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            raise Unresolved(path, at)
    return value


def look_in_run(path: Path) -> Get:
    """A function that reads the path in a run."""
    root = path[0]
    if root == "steps" and len(path) > 1:
        return _look_in_steps(path)
    if root == "parameters":
        return lambda scope: walk(scope.run.parameters, path, 1)
    if root == "shared":
        return lambda scope: walk(scope.run.shared, path, 1)
    if root == "item":
        return lambda scope: walk(scope.item, path, 1)
    if root == "step":
        return lambda scope: walk(scope.step, path, 1)
    if root == "fanout":
        return lambda scope: walk(scope.fanout, path, 1)
    if root == "run":
        return lambda scope: walk(_run(scope), path, 1)
    return lambda _scope: walk(None, path, 0)


def _look_in_steps(path: Path) -> Get:
    step_id, rest = path[1], path[2:3]

    def look(scope: Scope) -> JsonValue:
        state = scope.run.steps.get(step_id)
        if state is None:
            raise Unresolved(path, 1)
        if rest in OUTPUT:
            return walk(state.output, path, 3)
        return walk({"status": str(state.status), "output": state.output}, path, 2)

    return look


def _run(scope: Scope) -> JsonObject:
    run = scope.run
    return {
        "id": run.id,
        "key": run.run_key,
        "workflow": scope.workflow,
        "parameters": run.parameters,
        "trigger": run.trigger,
        "partitionKey": run.partition_key,
        "correlationId": run.correlation_id,
    }


OUTPUT = (("output",), ("result",))  # both words are understood
STEP_FIELDS = frozenset({"output", "result", "status"})  # of `steps.<id>`
RUN_FIELDS = frozenset(_run(Scope(RunState(""))))
OWN_FIELDS = frozenset({"id", "name"})  # of `step`
FANOUT_FIELDS = frozenset({"index", "count", "parentStepId"})
