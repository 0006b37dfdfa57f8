"""Say which triggers read a field of a payload, so that nobody removes it unawares.

    predicate   $.payload.items[?@.price > 10]    reads /items/* and /items/*/price
    template    {{ event.payload.customer.id }}   reads /customer/id

The other half of `registry.readers.Readers`. What a loop of a template reads through its own
variable counts as reading the array it runs over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeAlias

from penstock.base.pointers import pointer as pointer_of
from penstock.envelope.names import matches_glob
from penstock.registry.readers import Reader
from penstock.triggers.clause import leaves
from penstock.triggers.json_template import compile_json
from penstock.triggers.language import NAMES, RUN_KEY_NAMES
from penstock.triggers.paths import compile_path
from penstock.triggers.template import compile_text
from penstock.triggers.trigger import Trigger, TriggerSpec, TriggerStatus

_Trail: TypeAlias = tuple[str, ...]


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
    name = f"{trigger.workflow_slug}/{trigger.spec.name}"
    for kind, trail in dict.fromkeys(_trails(trigger.spec)):
        if any(is_at_or_below(trail, place) for place in wanted):
            yield Reader(kind, name, pointer_of(trail))


def _trails(spec: TriggerSpec) -> Iterator[tuple[str, _Trail]]:
    """Every place of the payload that the trigger looks at."""
    for clause in spec.predicates:
        for leaf, _ in leaves(clause):
            for trail in compile_path(leaf.path).reads:
                if trail[:1] in (("payload",), ("*",), ("**",)):
                    yield "trigger", trail if trail[0] == "**" else trail[1:]
    for trail in _template_trails(spec):
        if trail[:2] == ("event", "payload"):
            yield "template", trail[2:]
        elif trail[0] == "events" and "payload" in trail[1:3]:
            yield "template", trail[trail.index("payload") + 1 :]


def _template_trails(spec: TriggerSpec) -> Iterator[_Trail]:
    yield from compile_json(spec.parameter_template).reads
    for source in (spec.idempotency_key_expression, spec.debounce_key, spec.group_key):
        if source is not None:
            yield from compile_text(source, names=NAMES).reads
    if spec.run_key_template is not None:
        yield from compile_text(spec.run_key_template, names=RUN_KEY_NAMES).reads


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
