"""Try a trigger with one event, and show everything it would come to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from penstock.base.errors import Fault, PenstockError
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.triggers.check import TriggerInvalid
from penstock.triggers.compiled import CompiledTrigger, Scope, compile_trigger
from penstock.triggers.template import TemplateFailed
from penstock.triggers.trigger import Trigger
from penstock.workflows.runkey import fit_run_key

_SEALED = {"$enc", "subject"}  # personal data, as it is stored


def preview_of(trigger: Trigger, event: JsonObject, now: datetime) -> JsonObject:
    """What the trigger makes of the event, as far as one event can tell."""
    kind, source = event.get("type"), event.get("source")
    if not isinstance(kind, str) or not isinstance(source, str):
        raise TriggerInvalid([Fault("/event", "expected an event with a type and a source")])
    compiled = compile_trigger(trigger)
    trace = compiled.predicates.trace(event)
    wanted = compiled.wants(kind, source)
    trial = _Trial(compiled, Scope(event, now))
    rendered = trial.render()
    faults: list[JsonValue] = [{"pointer": f.pointer, "detail": f.detail} for f in trial.faults]
    return {
        "wanted": wanted,
        "predicates": covered(trace.wire()),
        "matches": wanted and trace.outcome,
        "wouldLaunch": wanted and trace.outcome and not faults,
        **{name: covered(value) for name, value in rendered.items()},
        "faults": faults,
    }


def covered(value: JsonValue) -> JsonValue:
    """The value with a word in place of what is stored sealed: its ciphertext tells nobody."""
    if isinstance(value, list):
        return [covered(each) for each in value]
    if not isinstance(value, dict):
        return value
    if set(value) == _SEALED:
        return {"$masked": True, "subject": value["subject"]}
    return {name: covered(each) for name, each in value.items()}


class _Trial:
    """Renders what can be rendered, and keeps what went wrong."""

    def __init__(self, compiled: CompiledTrigger, scope: Scope) -> None:
        self.faults: list[Fault] = []
        self._compiled, self._scope = compiled, scope

    def render(self) -> JsonObject:
        """The parameters and every key; null where there is none, or it failed."""
        compiled, scope, spec = self._compiled, self._scope, self._compiled.spec
        parameters = self._try("parameterTemplate", lambda: compiled.parameters(scope))
        return {
            "parameters": parameters,
            "idempotencyKey": self._try(
                "idempotencyKeyExpression", lambda: compiled.idempotency_key(scope)
            ),
            "debounceKey": None
            if spec.debounce_ms is None
            else self._try("debounceKey", lambda: compiled.debounce_key(scope)),
            "groupKey": None
            if spec.per == "event"
            else self._try("groupKey", lambda: compiled.group_key(scope)),
            "runKey": self._try("runKeyTemplate", lambda: self._run_key(parameters)),
        }

    def _run_key(self, parameters: JsonValue) -> str | None:
        """The run key as the run would have it; None: one of its own for each delivery."""
        given = self._compiled.run_key(self._scope, parameters)
        return None if given is None else fit_run_key(given).key

    def _try(self, field: str, render: Callable[[], JsonValue]) -> JsonValue:
        try:
            return render()
        except TemplateFailed as failed:
            self.faults.append(failed.below(f"/{field}").faults[0])
        except PenstockError as error:
            self.faults.append(Fault(f"/{field}", error.detail))
        return None
