"""Say which triggers read a field of a payload, so that nobody removes it unawares.

    predicate   $.payload.items[?@.price > 10]    reads /items/* and /items/*/price
    template    {{ event.payload.customer.id }}   reads /customer/id

The other half of `registry.readers.Readers`. What a loop of a template reads through its own
variable counts as reading the array it runs over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from penstock.base.pointers import pointer as pointer_of
from penstock.envelope.names import matches_glob
from penstock.registry.readers import Reader
from penstock.triggers.check import key_texts
from penstock.triggers.clause import Leaf, Operator, placed
from penstock.triggers.json_template import compile_json
from penstock.triggers.paths import compile_path
from penstock.triggers.template import compile_text
from penstock.triggers.trigger import Trigger, TriggerSpec, TriggerStatus

_Trail: TypeAlias = tuple[str, ...]


class Use(StrEnum):
    """What a trigger does with what it reads."""

    COMPARED = "compared"
    ASKED = "asked"  # whether it is there, or null
    PASSED = "passed"  # handed on to the run


class Read(NamedTuple):
    """One place of the payload that a trigger looks at."""

    kind: str  # trigger: in a comparison; else template
    pointer: str  # where the trigger says so
    trail: _Trail
    use: Use


class TriggerReaders:
    """The triggers of this moment, asked for anew each time; disabled ones read nothing."""

    def __init__(self, triggers: Callable[[], Iterable[Trigger]]) -> None:
        self._triggers = triggers

    def reading(self, event_type: str, pointers: Collection[str]) -> list[Reader]:
        """Everything that reads one of these places of the type's payload, or below it."""
        wanted = [_steps(pointer) for pointer in pointers]
        return [
            reader
            for trigger in self._triggers()
            if trigger.spec.status is not TriggerStatus.DISABLED
            and matches_glob(trigger.spec.event_type, event_type)
            for reader in _readers(trigger, wanted)
        ]


def _readers(trigger: Trigger, wanted: list[_Trail]) -> Iterator[Reader]:
    reads = ((each.kind, each.trail) for each in reads_of(trigger.spec))
    for kind, trail in dict.fromkeys(reads):
        if any(is_at_or_below(trail, place) for place in wanted):
            yield Reader(kind, trigger.title, pointer_of(trail))


def reads_of(spec: TriggerSpec) -> Iterator[Read]:
    """Every place of the payload that the trigger looks at, and where it says so."""
    for n, clause in enumerate(spec.predicates):
        for leaf, pointer in placed(clause, f"/predicates/{n}"):
            yield from _leaf_reads(leaf, f"{pointer}/path")
    for trail in compile_json(spec.parameter_template).reads:
        yield from _template_reads("/parameterTemplate", trail, Use.PASSED)
    for field, source, names in key_texts(spec):
        for trail in compile_text(source, names=names).reads:
            yield from _template_reads(f"/{field}", trail, Use.COMPARED)


def _leaf_reads(leaf: Leaf, pointer: str) -> Iterator[Read]:
    is_null = leaf.operator in (Operator.EQUALS, Operator.NOT_EQUALS) and leaf.value is None
    use = Use.ASKED if leaf.operator is Operator.EXISTS or is_null else Use.COMPARED
    *filters, found = compile_path(leaf.path).reads
    for trail, how in (*((trail, Use.COMPARED) for trail in filters), (found, use)):
        if trail[:1] in (("payload",), ("*",), ("**",)):
            yield Read("trigger", pointer, trail if trail[0] == "**" else trail[1:], how)


def _template_reads(pointer: str, trail: _Trail, use: Use) -> Iterator[Read]:
    if trail[:2] == ("event", "payload"):
        yield Read("template", pointer, trail[2:], use)
    elif trail[0] == "events" and "payload" in trail[1:3]:
        yield Read("template", pointer, trail[trail.index("payload") + 1 :], use)


def is_at_or_below(trail: _Trail, place: _Trail) -> bool:
    """Whether what a trail reads is the place, or something in it."""
    if not place:
        return True
    if not trail:
        return False
    if trail[0] == "**":
        return any(is_at_or_below(trail[1:], place[n:]) for n in range(len(place)))
    same = trail[0] == place[0] or "*" in (trail[0], place[0])
    return same and is_at_or_below(trail[1:], place[1:])


def _steps(pointer: str) -> _Trail:
    parts = pointer.split("/")[1:]
    return tuple(
        "*" if part.isdecimal() else part.replace("~1", "/").replace("~0", "~") for part in parts
    )
