"""Order the steps of a workflow by what they depend on, and find what cannot be ordered.

Pure, and linear in the number of dependencies. The topological order is the document's own order as
far as dependencies allow, so it is the same every time.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.base.errors import Fault
from penstock.envelope.envelope import JsonObject


@dataclass(frozen=True, slots=True)
class Dag:
    """Which step comes after which."""

    roots: tuple[str, ...]
    sinks: tuple[str, ...]
    order: tuple[str, ...]  # every step after all that it depends on
    before: Mapping[str, tuple[str, ...]]  # what a step depends on, each once
    after: Mapping[str, tuple[str, ...]]  # what depends on a step
    ancestors: Mapping[str, frozenset[str]]  # everything that must succeed before a step

    def wire(self) -> JsonObject:
        """The graph as the API shows it."""
        return {
            "roots": list(self.roots),
            "topologicalOrder": list(self.order),
            "adjacency": {step: list(after) for step, after in self.after.items()},
            "edges": sum(len(after) for after in self.after.values()),
        }


def dag_of(depends_on: Mapping[str, Sequence[str]]) -> Dag:
    """The graph of steps that `dag_faults` found nothing wrong with."""
    before = {step: tuple(dict.fromkeys(needs)) for step, needs in depends_on.items()}
    after = _turned(before)
    order = _ordered(before, after)
    ancestors: dict[str, frozenset[str]] = {}
    for step in order:
        needs = before[step]
        ancestors[step] = frozenset(needs).union(*(ancestors[need] for need in needs))
    return Dag(
        roots=tuple(step for step, needs in before.items() if not needs),
        sinks=tuple(step for step in before if not after[step]),
        order=tuple(order),
        before=before,
        after=after,
        ancestors=ancestors,
    )


def dag_faults(steps: Sequence[tuple[str, Sequence[str]]]) -> list[Fault]:
    """Ids that stand twice, dependencies on nothing or on oneself, and circles."""
    places: dict[str, int] = {}
    found = []
    for number, (step, _) in enumerate(steps):
        if step in places:
            detail = f"expected an id of its own, found {step!r} also at /steps/{places[step]}"
            found.append(Fault(f"/steps/{number}/id", detail))
        places.setdefault(step, number)
    for number, (step, needs) in enumerate(steps):
        for at, need in enumerate(needs):
            if need == step:
                detail = "expected another step, found the step itself"
            elif need not in places:
                detail = f"expected the id of a step, found {need!r}"
            else:
                continue
            found.append(Fault(f"/steps/{number}/dependsOn/{at}", detail))
    return found or _circle_faults(dict(steps), places)


def _circle_faults(
    depends_on: Mapping[str, Sequence[str]], places: Mapping[str, int]
) -> list[Fault]:
    before = {step: tuple(dict.fromkeys(needs)) for step, needs in depends_on.items()}
    free = set(_ordered(before, _turned(before)))
    stuck = [step for step in before if step not in free]
    if not stuck:
        return []
    walk, step = [], stuck[0]
    while step not in walk:
        walk.append(step)
        step = next(need for need in before[step] if need not in free)
    circle = walk[walk.index(step) :]
    first = min(circle, key=places.__getitem__)
    turned = circle[circle.index(first) :] + circle[: circle.index(first)]
    detail = f"expected steps without a circle, found {' → '.join([*turned, first])}"
    return [Fault(f"/steps/{places[first]}/dependsOn", detail)]


def _turned(before: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    after: dict[str, list[str]] = {step: [] for step in before}
    for step, needs in before.items():
        for need in needs:
            after[need].append(step)
    return {step: tuple(then) for step, then in after.items()}


def _ordered(
    before: Mapping[str, tuple[str, ...]], after: Mapping[str, tuple[str, ...]]
) -> list[str]:
    """Steps in an order that respects dependencies; those in or behind a circle are left out."""
    names = list(before)
    place = {step: number for number, step in enumerate(names)}
    waiting = {step: len(needs) for step, needs in before.items()}
    ready = [place[step] for step, left in waiting.items() if not left]  # sorted, so a heap
    order = []
    while ready:
        step = names[heapq.heappop(ready)]
        order.append(step)
        for then in after[step]:
            waiting[then] -= 1
            if not waiting[then]:
                heapq.heappush(ready, place[then])
    return order
