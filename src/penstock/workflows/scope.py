"""Check when a definition is saved that its templates can find what they name.

A step sees the outputs of the steps it depends on, directly or not, and no others: what runs beside
it may or may not be there yet. For the same reason every name under `shared` is stored by steps
that come one after another, and read only by steps that come before or after each of them. So what
a step is given never depends on which worker was faster; tests/workflows/test_advance.py shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.base.errors import Fault
from penstock.workflows.dag import Dag
from penstock.workflows.params import (
    FANOUT_FIELDS,
    OWN_FIELDS,
    RUN_FIELDS,
    STEP_FIELDS,
    Hole,
    Path,
    holes,
)
from penstock.workflows.steps import FanoutStep, Step, WorkStep

TEMPLATES_MAX = 200  # in one step


@dataclass(frozen=True, slots=True)
class _Sight:
    """What one step can see."""

    step_id: str
    dag: Dag
    writers: Mapping[str, Sequence[str]]  # the steps that store a name under `shared`
    in_fanout: bool = False


def scope_faults(steps: Sequence[Step], dag: Dag) -> list[Fault]:
    """Templates that can never resolve, and names under `shared` that would be a race."""
    writers: dict[str, list[str]] = {}
    for step in steps:
        for _, name in step.stores():
            writers.setdefault(name, []).append(step.id)
    found: list[Fault] = []
    for number, step in enumerate(steps):
        place, sight = f"/steps/{number}", _Sight(step.id, dag, writers)
        found += _store_faults(step, place, sight)
        if isinstance(step, FanoutStep):
            found += _fanout_faults(step, place, sight)
        else:
            found += _hole_faults(_work_holes(step, place), place, sight)
    return found


def _work_holes(step: WorkStep, place: str) -> Iterator[Hole]:
    return holes(step.input_template(), place + step.input_at)


def _store_faults(step: Step, place: str, sight: _Sight) -> Iterator[Fault]:
    stores = step.stores()
    if len(stores) > 1:
        detail = f"expected one name for the result, found {stores[1][0]} as well"
        yield Fault(f"{place}/{stores[0][0]}", detail)
    for field, name in stores:
        for other in sight.writers[name]:
            if other == step.id:
                break
            if not _is_ordered(sight.dag, step.id, other):
                found = f"found {name!r}, which {other!r} beside it stores too"
                yield Fault(f"{place}/{field}", f"expected a name of its own, {found}")


def _fanout_faults(step: FanoutStep, place: str, sight: _Sight) -> Iterator[Fault]:
    template, inside = step.template, f"{place}/template"
    collection = list(holes(step.collection, f"{place}/collection"))
    if isinstance(step.collection, str) and not collection:
        detail = "expected a list, or a template that gives one, found other text"
        yield Fault(f"{place}/collection", detail)
    if template.depends_on:
        yield Fault(f"{inside}/dependsOn", "expected none, found some: the fan-out has them")
    for field, _ in template.stores():
        detail = "expected none, found one: storeResultsAs of the fan-out keeps every result"
        yield Fault(f"{inside}/{field}", detail)
    if template.id in sight.dag.before:
        yield Fault(f"{inside}/id", f"expected an id of its own, found {template.id!r} again")
    yield from _hole_faults(collection, place, sight)
    yield from _hole_faults(_work_holes(template, inside), inside, replace(sight, in_fanout=True))


def _hole_faults(found: Iterable[Hole], place: str, sight: _Sight) -> Iterator[Fault]:
    listed = list(found)
    if len(listed) > TEMPLATES_MAX:
        yield Fault(place, f"expected at most {TEMPLATES_MAX} templates, found {len(listed)}")
    for hole in listed[:TEMPLATES_MAX]:
        detail = _path_fault(hole, sight)
        if detail is not None:
            yield Fault(hole.pointer, detail)


def _path_fault(hole: Hole, sight: _Sight) -> str | None:
    if hole.path is None:
        return f"expected a path like {{{{ steps.load.output.rows }}}}, found {hole.text!r}"
    check = _ROOTS.get(hole.path[0])
    if check is None:
        return f"expected one of {', '.join(_ROOTS)}, found {hole.path[0]!r}"
    return check(hole.path, sight)


def _steps(path: Path, sight: _Sight) -> str | None:
    named = path[1] if len(path) > 1 else ""
    if named not in sight.dag.ancestors[sight.step_id]:
        return f"expected a step that this one depends on, found {named!r}"
    return _field(path, 2, STEP_FIELDS)


def _shared(path: Path, sight: _Sight) -> str | None:
    name = path[1] if len(path) > 1 else ""
    writers, before = sight.writers.get(name, ()), sight.dag.ancestors[sight.step_id]
    if before.isdisjoint(writers):
        return f"expected a name that a step before this one stores, found {name!r}"
    for writer in writers:
        if writer != sight.step_id and not _is_ordered(sight.dag, sight.step_id, writer):
            return f"expected a name stored before or after this step, found {writer!r} beside it"
    return None


def _of_fanout(path: Path, sight: _Sight) -> str | None:
    if not sight.in_fanout:
        return f"expected {path[0]!r} in the template of a fan-out only, found it here"
    return None if path[0] == "item" else _field(path, 1, FANOUT_FIELDS)


def _field(path: Path, at: int, known: frozenset[str]) -> str | None:
    if len(path) > at and path[at] in known:
        return None
    found = repr(path[at]) if len(path) > at else "nothing"
    return f"expected {'.'.join(path[:at])} with one of {', '.join(sorted(known))}, found {found}"


def _is_ordered(dag: Dag, one: str, other: str) -> bool:
    return other in dag.ancestors[one] or one in dag.ancestors[other]


_ROOTS: dict[str, Callable[[Path, _Sight], str | None]] = {
    "parameters": lambda _path, _sight: None,
    "steps": _steps,
    "shared": _shared,
    "run": lambda path, _sight: _field(path, 1, RUN_FIELDS),
    "step": lambda path, _sight: _field(path, 1, OWN_FIELDS),
    "item": _of_fanout,
    "fanout": _of_fanout,
}
