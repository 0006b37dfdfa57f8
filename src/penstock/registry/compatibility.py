"""Compare two schemas of one type: what changed, and whom it breaks.

    compare(old, new) ──▶ Difference… ──▶ verdict: full · backward · forward · none

backward   what fits the old schema fits the new one: publishers and stored events go on working
forward    what fits the new schema fits the old one: readers of the old version go on working

A field that is added to a schema which allows undeclared fields counts as compatible, although
somebody may have sent one by that name and another type: `evidence` looks at what was really sent.
What cannot be compared counts as broken, never as fine. tests/registry/test_compatibility.py has a
corpus of evolutions, and checks the verdicts against payloads made at random.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from penstock.base.pointers import pointer as pointer_of
from penstock.envelope.envelope import JsonObject
from penstock.registry.difference import Change, Difference, changed, narrowed, widened
from penstock.registry.limits import FROM_WHOLE, TO_WHOLE, compare_limits
from penstock.registry.shape import KINDS, Place, Shape, Shapes, TooComplex

Verdict: TypeAlias = Literal["full", "backward", "forward", "none"]

_DEPTH_MAX = 32  # no payload is deeper
_STEPS_MAX = 20_000
_PAIRS_MAX = 256


def compare(old: JsonObject, new: JsonObject) -> tuple[Difference, ...]:
    """Every difference, in the order of the old schema; what reads the same is said once."""
    comparison = _Comparison(Shapes(old), Shapes(new))
    try:
        found = tuple(comparison.places(comparison.old.root, comparison.new.root, "", 0))
    except (TooComplex, RecursionError):
        return (changed("", "is described by schemas too complex to be compared"),)
    return tuple(dict.fromkeys(found))


def verdict(differences: Iterable[Difference]) -> Verdict:
    """Which of the two promises the differences keep."""
    found = tuple(differences)
    backward = not any(each.narrows for each in found)
    forward = not any(each.widens for each in found)
    if backward and forward:
        return "full"
    return "backward" if backward else "forward" if forward else "none"


def breaks(differences: Iterable[Difference]) -> tuple[Difference, ...]:
    """The differences that publishers and stored events do not survive."""
    return tuple(each for each in differences if each.narrows)


class _Comparison:
    """One walk through two schemas at once."""

    def __init__(self, old: Shapes, new: Shapes) -> None:
        self.old = old
        self.new = new
        self._trail: set[tuple[object, ...]] = set()
        self._steps = 0

    def places(self, old: Place, new: Place, pointer: str, depth: int) -> Iterator[Difference]:
        """What differs at one place and below it."""
        old, new = self.old.settled(old), self.new.settled(new)
        here = (tuple(map(id, old)), tuple(map(id, new)))
        if here in self._trail or depth > _DEPTH_MAX:
            return  # a schema that refers to itself: this pair is being compared already
        self._steps += 1
        if self._steps > _STEPS_MAX:
            raise TooComplex
        self._trail.add(here)
        try:
            before, after = self.old.at(old), self.new.at(new)
            retyped = tuple(_compare_kinds(before, after, pointer))
            yield from retyped
            for kind in KINDS:
                if kind in before and kind in after:
                    for found in self._choices(before[kind], after[kind], pointer, depth):
                        if not (retyped and found.detail in (TO_WHOLE, FROM_WHOLE)):
                            yield found
        finally:
            self._trail.discard(here)

    def _choices(
        self, old: list[Shape], new: list[Shape], pointer: str, depth: int
    ) -> Iterator[Difference]:
        """Shapes of one kind: every old one should fit a new one, and the other way round."""
        if len(old) == len(new) == 1:
            yield from self._shapes(old[0], new[0], pointer, depth)
            return
        if len(old) * len(new) > _PAIRS_MAX:
            raise TooComplex
        pairs = {
            (a, b): tuple(self._shapes(one, other, pointer, depth))
            for a, one in enumerate(old)
            for b, other in enumerate(new)
        }
        gone = [
            a for a in range(len(old))
            if all(any(d.narrows for d in pairs[a, b]) for b in range(len(new)))
        ]  # fmt: skip
        fresh = [
            b for b in range(len(new))
            if all(any(d.widens for d in pairs[a, b]) for a in range(len(old)))
        ]  # fmt: skip
        if len(gone) == len(fresh) == 1:
            yield from pairs[gone[0], fresh[0]]
            return
        for a in range(len(old)):
            yield from _harmless(pairs[a, b] for b in range(len(new)))
        for b in range(len(new)):
            yield from _harmless(pairs[a, b] for a in range(len(old)))
        kind = old[0].kind
        if gone:
            yield narrowed(pointer, f"no longer allows {len(gone)} of {len(old)} shapes of {kind}")
        if fresh:
            yield widened(pointer, f"allows {len(fresh)} more shapes of {kind} now")

    def _shapes(self, old: Shape, new: Shape, pointer: str, depth: int) -> Iterator[Difference]:
        yield from compare_limits(old, new, pointer)
        if old.kind == "object":
            yield from self._objects(old, new, pointer, depth)
        elif old.kind == "array":
            for index in range(max(old.first_items(), new.first_items())):
                place = f"{pointer}/{index}"
                yield from self.places(old.item(index), new.item(index), place, depth + 1)
            yield from self.places(old.item(None), new.item(None), f"{pointer}/*", depth + 1)

    def _objects(self, old: Shape, new: Shape, pointer: str, depth: int) -> Iterator[Difference]:
        before, after = old.declared(), new.declared()
        for name in before:
            place = pointer + pointer_of([name])
            if name in after:
                yield from _compare_need(old, new, name, place)
                yield from self.places(old.member(name), new.member(name), place, depth + 1)
            else:
                yield from self._removed(old, new, name, place, depth)
        for name in after:
            if name not in before:
                yield from self._added(old, new, name, pointer + pointer_of([name]), depth)
        for name in sorted((old.required() | new.required()) - {*before, *after}):
            yield from _compare_need(old, new, name, pointer + pointer_of([name]))
        yield from self._others(old, new, pointer, depth)

    def _removed(
        self, old: Shape, new: Shape, name: str, place: str, depth: int
    ) -> Iterator[Difference]:
        if name in new.required():  # still wanted, only not described any more
            yield from _compare_need(old, new, name, place)
            yield from self.places(old.member(name), new.member(name), place, depth + 1)
            return
        promised = name in old.required()
        word = "was required and was removed" if promised else "was removed"
        if not new.others():
            yield Difference(place, Change.REMOVED, word, widens=promised)
        elif not self.new.at(new.member(name)):
            word += ", and is refused now"
            yield Difference(place, Change.REMOVED, word, narrows=True, widens=promised)
        else:
            yield Difference(place, Change.REMOVED, word, widens=promised)
            yield from self.places(old.member(name), new.member(name), place, depth + 1)

    def _added(
        self, old: Shape, new: Shape, name: str, place: str, depth: int
    ) -> Iterator[Difference]:
        if name in old.required():  # wanted before, only not described
            yield from _compare_need(old, new, name, place)
            yield from self.places(old.member(name), new.member(name), place, depth + 1)
            return
        needed = name in new.required()
        word = "was added as a required field" if needed else "was added"
        if not old.others():
            yield Difference(place, Change.ADDED, word, narrows=needed)
        elif not self.old.at(old.member(name)):
            word += ", which was refused before"
            yield Difference(place, Change.ADDED, word, narrows=needed, widens=True)
        else:
            yield Difference(place, Change.ADDED, word, narrows=needed)
            yield from self.places(old.member(name), new.member(name), place, depth + 1)

    def _others(self, old: Shape, new: Shape, pointer: str, depth: int) -> Iterator[Difference]:
        before, after = old.others(), new.others()
        if not before and not after:
            return
        open_before, open_after = self.old.at(before), self.new.at(after)
        if open_before and not open_after:
            yield narrowed(pointer, "refuses fields that are not declared now")
        elif open_after and not open_before:
            yield widened(pointer, "allows fields that are not declared now")
        elif open_before:
            yield from self.places(before, after, f"{pointer}/*", depth + 1)


def _harmless(found: Iterable[tuple[Difference, ...]]) -> tuple[Difference, ...]:
    """Of the closest match, what is worth a word though it breaks nothing."""
    closest = min(found, key=len)
    return () if any(each.narrows or each.widens for each in closest) else closest


def _compare_kinds(
    before: dict[str, list[Shape]], after: dict[str, list[Shape]], pointer: str
) -> Iterator[Difference]:
    if before.keys() == after.keys():
        return
    lost, gained = _names(before) - _names(after), _names(after) - _names(before)
    retyped = bool(lost and gained)
    change = Change.RETYPED if retyped else Change.NARROWED if lost else Change.WIDENED
    detail = f"was {_words(before)}, is now {_words(after)}"
    yield Difference(pointer, change, detail, narrows=bool(lost), widens=bool(gained))


def _names(found: dict[str, list[Shape]]) -> set[str]:
    """The kinds, with whole numbers as one of their own that every number includes."""
    whole = {"integer"} if "number" in found else set()
    return whole | {kind for kind in found if kind != "number" or not _is_whole(found[kind])}


def _is_whole(shapes: list[Shape]) -> bool:
    return all(shape.is_whole for shape in shapes)


def _compare_need(old: Shape, new: Shape, name: str, place: str) -> Iterator[Difference]:
    before, after = name in old.required(), name in new.required()
    if after and not before:
        yield Difference(place, Change.REQUIRED, "is required now", narrows=True)
    elif before and not after:
        yield Difference(place, Change.OPTIONAL, "is no longer required", widens=True)


def _words(found: dict[str, list[Shape]]) -> str:
    if len(found) == len(KINDS):
        return "any JSON"
    words = [
        "integer" if kind == "number" and _is_whole(shapes) else kind
        for kind, shapes in sorted(found.items(), key=lambda item: item[0] == "null")
    ]
    return " or ".join(words) or "nothing at all"
