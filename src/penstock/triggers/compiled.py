"""Make a trigger ready to judge: its types, its predicates and its templates, compiled once.

    Trigger ── compile_trigger ──▶ CompiledTrigger ── wants ──▶ predicates.test ──▶ keys, parameters

What is compiled depends on the spec alone and is shared by all that say the same. A compiled
trigger crosses to another process as the trigger it was made from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from penstock.base.clock import format_instant
from penstock.envelope.codec import canonical, load_stored
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.envelope.names import is_glob, matches_glob
from penstock.triggers.json_template import JsonTemplate, compile_json
from penstock.triggers.language import NAMES, RUN_KEY_NAMES
from penstock.triggers.predicate import Predicates, compile_predicates
from penstock.triggers.template import Template, TemplateFailed, compile_text
from penstock.triggers.trigger import Trigger, TriggerSpec

KEY_CHARS_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class Scope:
    """What templates see beside the trigger: the event, the moment, and the events of a batch."""

    event: JsonObject  # `document_of` the event that is judged
    judged_at: datetime
    events: tuple[JsonObject, ...] = ()  # of a batch, oldest first; else empty


@dataclass(frozen=True, slots=True)
class _Plan:
    predicates: Predicates
    parameters: JsonTemplate | None
    run_key: Template | None
    idempotency_key: Template | None
    debounce_key: Template | None
    group_key: Template | None


class CompiledTrigger:
    """A trigger that is ready to judge events."""

    __slots__ = ("_plan", "_shown", "predicates", "spec", "trigger", "wants")

    def __init__(self, trigger: Trigger) -> None:
        self.trigger = trigger
        self.spec = trigger.spec
        self._plan = _plan(canonical(trigger.spec.wire()))
        self.predicates = self._plan.predicates
        self.wants: Callable[[str, str], bool] = _wants(trigger.spec)
        self._shown = trigger.wire()

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_trigger, (self.trigger,)

    def idempotency_key(self, scope: Scope) -> str | None:
        """The key that no other live delivery may have; None when there is none, or it is blank."""
        return self._key(self._plan.idempotency_key, scope) or None

    def debounce_key(self, scope: Scope) -> str:
        """Which events wait for each other to fall quiet; all of them when no key is given."""
        return self._key(self._plan.debounce_key, scope)

    def group_key(self, scope: Scope) -> str:
        """Which events are batched, or replaced by the latest of them; all when none is given."""
        return self._key(self._plan.group_key, scope)

    def parameters(self, scope: Scope) -> JsonValue:
        """The parameters of the run; {} without a template. TemplateFailed when it cannot be."""
        template = self._plan.parameters
        return {} if template is None else template.render(self._names(scope))

    def run_key(self, scope: Scope, parameters: JsonValue) -> str | None:
        """The run key that the template gives; None when there is none, or it is blank."""
        names = self._names(scope) | {"parameters": parameters}
        return self._text(self._plan.run_key, names) or None

    def _key(self, template: Template | None, scope: Scope) -> str:
        return "" if template is None else self._text(template, self._names(scope))

    def _text(self, template: Template | None, names: JsonObject) -> str:
        if template is None:
            return ""
        text = template.render(names).strip()
        if len(text) > KEY_CHARS_MAX:
            raise TemplateFailed(
                f"expected a key of at most {KEY_CHARS_MAX} characters, found {len(text)}"
            )
        return text

    def _names(self, scope: Scope) -> JsonObject:
        return {
            "event": scope.event,
            "events": list(scope.events) or [scope.event],
            "trigger": self._shown,
            "now": format_instant(scope.judged_at),
        }


def compile_trigger(trigger: Trigger) -> CompiledTrigger:
    """The trigger, ready to judge; cheap when its spec was compiled before."""
    return CompiledTrigger(trigger)


@lru_cache(4096)
def _plan(words: bytes) -> _Plan:
    """The compiled spec. Its words are the key: versions with the same words share one."""
    spec = TriggerSpec.model_validate(load_stored(words))
    template = spec.parameter_template
    return _Plan(
        predicates=compile_predicates(spec.predicates),
        parameters=None if template is None else compile_json(template),
        run_key=_text(spec.run_key_template, RUN_KEY_NAMES),
        idempotency_key=_text(spec.idempotency_key_expression),
        debounce_key=_text(spec.debounce_key),
        group_key=_text(spec.group_key),
    )


def _text(source: str | None, names: tuple[str, ...] = NAMES) -> Template | None:
    return None if source is None else compile_text(source, names=names)


def _wants(spec: TriggerSpec) -> Callable[[str, str], bool]:
    """Whether events of a type and a source are looked at, whatever they say."""
    pattern, wanted = spec.event_type, spec.event_source
    if is_glob(pattern):
        if wanted is None:
            return lambda type_, _source: matches_glob(pattern, type_)
        return lambda type_, source: source == wanted and matches_glob(pattern, type_)
    if wanted is None:
        return lambda type_, _source: type_ == pattern
    return lambda type_, source: type_ == pattern and source == wanted
