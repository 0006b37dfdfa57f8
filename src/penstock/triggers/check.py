"""Read a trigger that somebody wrote, and say all that is wrong with it before it is kept.

    JSON ──▶ shape ──▶ paths and regular expressions ──▶ templates ──▶ TriggerSpec
                                     └── with a sample event: rendered, nothing may be missing

A spec that comes out of here compiles. The sample is not kept; it shows early what would fail on
the first event of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pydantic import ValidationError

from penstock.base.errors import Fault, NotInProfile, PenstockError
from penstock.envelope.codec import canonical
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.envelope.fields import kind
from penstock.envelope.limits import DEPTH_MAX
from penstock.triggers.clause import Leaf, Operator, placed
from penstock.triggers.compare import matcher
from penstock.triggers.faults import faults_of
from penstock.triggers.json_template import compile_json
from penstock.triggers.language import NAMES, RUN_KEY_NAMES
from penstock.triggers.paths import PathInvalid, compile_path
from penstock.triggers.regexes import RegexInvalid
from penstock.triggers.template import TemplateFailed, compile_text
from penstock.triggers.trigger import TriggerSpec

SPEC_BYTES_MAX: Final = 128 * 1024
FAULTS_MAX: Final = 20
_SAMPLE_NOW: Final = "2026-01-01T00:00:00.000Z"


class TriggerInvalid(PenstockError):
    """A trigger that cannot be kept; `faults` says where and why."""

    code = "trigger_invalid"
    remedy = "Correct the fields named in `errors`; docs/reference/triggers.md lists every limit."

    def __init__(self, faults: list[Fault]) -> None:
        first = faults[0]
        detail = f"{first.pointer}: {first.detail}" if first.pointer else first.detail
        super().__init__(detail, faults=tuple(faults[:FAULTS_MAX]))

    def flattened(self) -> JsonObject:
        """The same as `{formErrors, fieldErrors}`: sentences by the top field they belong to."""
        form: list[JsonValue] = []
        fields: dict[str, JsonValue] = {}
        for fault in self.faults:
            field, _, rest = fault.pointer.removeprefix("/").partition("/")
            said = f"/{rest}: {fault.detail}" if rest else fault.detail
            if not field:
                form.append(said)
                continue
            sentences = fields.setdefault(field, [])
            if isinstance(sentences, list):
                sentences.append(said)
        return {"formErrors": form, "fieldErrors": fields}


def check_spec(said: JsonValue, sample_event: JsonValue = None) -> TriggerSpec:
    """The spec that JSON says; TriggerInvalid with everything that is wrong."""
    if not isinstance(said, dict):
        raise TriggerInvalid([Fault("", f"expected an object, found {kind(said)}")])
    _check_size(said)
    try:
        spec = TriggerSpec.model_validate(said)
    except ValidationError as error:
        raise TriggerInvalid(faults_of(error, TriggerSpec)) from None
    faults = [*_clause_faults(spec), *_template_faults(spec)]
    if not faults and sample_event is not None:
        faults = list(_sample_faults(spec, sample_event))
    if faults:
        raise TriggerInvalid(faults)
    return spec


def check_patch(
    spec: TriggerSpec, changes: JsonValue, sample_event: JsonValue = None
) -> TriggerSpec:
    """The spec with some fields said anew; a field said to be null is as if never said."""
    if not isinstance(changes, dict) or not changes:
        found = "none" if isinstance(changes, dict) else kind(changes)
        raise TriggerInvalid(
            [Fault("", f"expected an object of at least one field, found {found}")]
        )
    whole = {name: value for name, value in spec.wire().items() if value is not None} | changes
    optional = ("per", "status", "maxAttempts", "predicates")
    return check_spec(
        {k: v for k, v in whole.items() if v is not None or k not in optional}, sample_event
    )


def _check_size(said: JsonObject) -> None:
    if _depth_of(said) > DEPTH_MAX:
        raise TriggerInvalid([Fault("", f"expected at most {DEPTH_MAX} levels, found more")])
    try:
        size = len(canonical(said))
    except NotInProfile as error:
        raise TriggerInvalid([Fault(error.pointer, error.detail)]) from None
    if size > SPEC_BYTES_MAX:
        raise TriggerInvalid([Fault("", f"expected at most {SPEC_BYTES_MAX} bytes, found {size}")])


def _depth_of(tree: JsonValue) -> int:
    depth, level = 0, [tree]
    while level and depth <= DEPTH_MAX:
        depth += 1
        level = [inner for value in level for inner in _inside(value)]
    return depth


def _inside(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _clause_faults(spec: TriggerSpec) -> Iterator[Fault]:
    for n, clause in enumerate(spec.predicates):
        for leaf, pointer in placed(clause, f"/predicates/{n}"):
            yield from _leaf_faults(leaf, pointer)


def _leaf_faults(leaf: Leaf, pointer: str) -> Iterator[Fault]:
    try:
        compile_path(leaf.path)
    except PathInvalid as error:
        yield Fault(f"{pointer}/path", str(error))
    if leaf.operator is Operator.REGEX:
        try:
            matcher(leaf)
        except RegexInvalid as error:
            yield Fault(f"{pointer}/value", str(error))


def key_texts(spec: TriggerSpec) -> list[tuple[str, str, tuple[str, ...]]]:
    """The templates of keys that the trigger has: field, text, and the names it may use."""
    said = [
        ("idempotencyKeyExpression", spec.idempotency_key_expression, NAMES),
        ("debounceKey", spec.debounce_key, NAMES),
        ("groupKey", spec.group_key, NAMES),
        ("runKeyTemplate", spec.run_key_template, RUN_KEY_NAMES),
    ]
    return [(field, text, names) for field, text, names in said if text is not None]


def _template_faults(spec: TriggerSpec) -> Iterator[Fault]:
    for field, text, names in key_texts(spec):
        try:
            compile_text(text, names=names)
        except TemplateFailed as failed:
            yield failed.below(f"/{field}").faults[0]
    try:
        compile_json(spec.parameter_template)
    except TemplateFailed as failed:
        yield failed.below("/parameterTemplate").faults[0]


def _sample_faults(spec: TriggerSpec, sample: JsonValue) -> Iterator[Fault]:
    if not isinstance(sample, dict):
        yield Fault("/sampleEvent", f"expected an event, found {kind(sample)}")
        return
    names: dict[str, Any] = {
        "event": sample,
        "events": [sample],
        "trigger": {"id": "sample", "version": 1, "workflowSlug": "sample", **spec.wire()},
        "now": _SAMPLE_NOW,
    }
    try:
        names["parameters"] = compile_json(spec.parameter_template, strict=True).render(names)
    except TemplateFailed as failed:
        yield failed.below("/parameterTemplate").faults[0]
        return
    for field, text, known in key_texts(spec):
        try:
            compile_text(text, strict=True, names=known).render(names)
        except TemplateFailed as failed:
            yield failed.below(f"/{field}").faults[0]
