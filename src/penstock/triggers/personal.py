"""Find where a trigger reads what nobody can read: personal fields, which are ciphertext by then.

    $.payload.email equals "a@b.c"     refused: it would never match, and say nothing
    {{ event.payload.email }}          a warning: the run is handed the ciphertext
    $.payload.email exists             fine: whether it is there can be seen, and so can null
    $.payload.email.subject            fine: the pseudonym, the same for all data of a subject

A trigger may listen to several types. As long as one of them has the field in the clear, comparing
it makes sense there, so that is a warning, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.base.errors import Fault
from penstock.base.pointers import pointer as pointer_of
from penstock.envelope.envelope import JsonObject
from penstock.envelope.names import matches_glob
from penstock.registry.registry import Registry
from penstock.registry.schema import SchemaVersion
from penstock.store.privacy.marks import Marks, marks_of
from penstock.store.privacy.trail import Trail, lead
from penstock.triggers.check import TriggerInvalid
from penstock.triggers.readers import Read, Use, reads_of
from penstock.triggers.trigger import Trigger, TriggerSpec, TriggerStatus

_PSEUDONYM: Trail = ("subject",)
_NAMED_MAX = 3


class TriggerReadsPersonal(TriggerInvalid):
    """A trigger that compares personal data, which is encrypted before a trigger sees it."""

    code = "trigger_reads_personal"
    remedy = (
        "Compare a field that is not personal, such as the id of the subject, or the pseudonym in"
        " `<field>.subject`; see docs/guides/personal-data.md."
    )


@dataclass(frozen=True, slots=True)
class Blind:
    """One place where a trigger reads ciphertext, and whether that is a reason to refuse it."""

    pointer: str
    detail: str
    is_refused: bool

    def wire(self) -> JsonObject:
        """The warning as the API shows it."""
        return {"pointer": self.pointer, "detail": self.detail, "refused": self.is_refused}


def blind_reads(
    spec: TriggerSpec, registry: Registry, *, beside: Iterable[Read] = ()
) -> list[Blind]:
    """Where personal data is read of the types that a trigger listens to: by it, and `beside`."""
    types = _listened(spec, registry)
    if all(marks_of(version) is None for version in types):
        return []
    found = (_blind(read, types) for read in (*reads_of(spec), *beside))
    return list(dict.fromkeys(each for each in found if each is not None))


def newly_blind(
    triggers: Iterable[Trigger], before: Registry, after: Registry
) -> list[tuple[Trigger, Blind]]:
    """What triggers would read as ciphertext by one registry and do not by the other."""
    found = []
    for trigger in triggers:
        if trigger.spec.status is not TriggerStatus.DISABLED:
            known = blind_reads(trigger.spec, before)
            news = (each for each in blind_reads(trigger.spec, after) if each not in known)
            found += [(trigger, each) for each in news]
    return found


def refuse_blind(
    spec: TriggerSpec, registry: Registry, *, before: TriggerSpec | None = None
) -> None:
    """TriggerReadsPersonal if the trigger compares personal data and did not do so before.

    A field may be marked when triggers read it already; they can still be changed and disabled.
    """
    known = set() if before is None else {each.detail for each in blind_reads(before, registry)}
    faults = [
        Fault(each.pointer, each.detail)
        for each in blind_reads(spec, registry)
        if each.is_refused and each.detail not in known
    ]
    if faults:
        raise TriggerReadsPersonal(faults)


def hidden_below(version: SchemaVersion, trail: Trail, *, allowed: Sequence[Trail]) -> bool:
    """Whether a trail names a personal field of the type, other than in an allowed way."""
    marks = marks_of(version)
    return marks is not None and bool(lead(marks, trail).hidden.difference(allowed))


def _listened(spec: TriggerSpec, registry: Registry) -> list[SchemaVersion]:
    """The types that the trigger listens to, each as it is published now."""
    found = (
        registry.find(name, None)
        for name in registry.types()
        if matches_glob(spec.event_type, name)
    )
    return [version for version in found if version is not None]


def _blind(read: Read, types: Sequence[SchemaVersion]) -> Blind | None:
    allowed = [_PSEUDONYM, ()] if read.use is Use.ASKED else [_PSEUDONYM]
    personal = [each for each in types if hidden_below(each, read.trail, allowed=allowed)]
    if not personal:
        return None
    field = f"{pointer_of(read.trail)} is personal in {_names(personal)}"
    if read.use is Use.PASSED:
        whom = read.kind if read.kind != "template" else "the run"
        return Blind(read.pointer, f"{field}: {whom} is handed its ciphertext", is_refused=False)
    if any(_has_it(types, read.trail, personal)):
        detail = f"{field}, though not in every type it listens to: there it is ciphertext"
        return Blind(read.pointer, detail, is_refused=False)
    detail = f"expected a field that can be compared, found that {field}: it is ciphertext here"
    return Blind(read.pointer, detail, is_refused=True)


def _has_it(
    types: Sequence[SchemaVersion], trail: Trail, personal: Sequence[SchemaVersion]
) -> Iterator[bool]:
    """For each of the other types, whether it has the place in the clear."""
    for version in types:
        if version not in personal:
            yield lead(marks_of(version) or Marks(version.schema), trail).clear


def _names(versions: Sequence[SchemaVersion]) -> str:
    named = ", ".join(each.event_type for each in versions[:_NAMED_MAX])
    more = len(versions) - _NAMED_MAX
    return f"{named} and {more} more" if more > 0 else named
