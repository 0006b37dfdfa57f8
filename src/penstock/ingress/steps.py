"""Declare the steps that enrich an event, in their order, and load those of other packages.

    10 event-source ▸ 20 metadata ▸ 30 correlation ▸ 40 causation ▸ 50 trace ▸ 60 tags ▸ 100 yours

A step is a pure function: an event and its schema in, what it found out about it. It cannot change
or remove what the publisher said, nor touch the payload: `enrich` adds what is missing, and nothing
else. A package adds a step as an entry point; an installed step is part of the program, as an
import is, so every process of one installation has the same ones.

    [project.entry-points."penstock.enrichment"]
    team = "our_package.enrichment:team"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import structlog

from penstock.catalog.trace import traceparent_of
from penstock.envelope.context import METADATA_KEY
from penstock.envelope.envelope import Envelope, JsonValue
from penstock.envelope.fields import RULES, TAG_VALUE_CHARS_MAX
from penstock.envelope.names import matches_glob
from penstock.registry.schema import SchemaVersion

GROUP: Final = "penstock.enrichment"
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_log = structlog.get_logger("ingress.steps")


class Found(NamedTuple):
    """What a step found out about one event."""

    tags: Mapping[str, str] = _NOTHING
    metadata: Mapping[str, JsonValue] = _NOTHING
    correlation_id: str | None = None
    causation_id: str | None = None
    traceparent: str | None = None


Find: TypeAlias = Callable[[Envelope, SchemaVersion | None], Found | None]


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what it does, when its turn comes, and for which types."""

    name: str
    find: Find
    order: int = 100
    types: tuple[str, ...] = ("**",)  # event types, or globs of them
    declared: str = ""  # only for types that declare this in the registry
    on_metadata: bool = False  # only for events that come with metadata
    is_ours: bool = False  # what it finds is known to fit, and is not checked again

    def applies(self, event_type: str, schema: SchemaVersion | None) -> bool:
        """Whether it ever has anything to do with events of a type."""
        if self.declared and (schema is None or not schema.metadata.get(self.declared)):
            return False
        return any(matches_glob(pattern, event_type) for pattern in self.types)


class Offer(Protocol):
    """One entry point of a package."""

    @property
    def name(self) -> str: ...

    def load(self) -> object: ...


def event_source(event: Envelope, schema: SchemaVersion | None) -> Found | None:
    """`plugin` when the source is a plugin's, else what the type declares."""
    if schema is None or "eventSource" in event.metadata:
        return None
    is_plugin = event.source == "plugin" or event.source.startswith("plugin.")
    declared = schema.metadata["eventSource"]
    return Found(metadata={"eventSource": "plugin" if is_plugin else declared})


def promised_metadata(event: Envelope, schema: SchemaVersion | None) -> Found | None:
    """Metadata that the type declares as pointers into its payload: the workflow's version."""
    found = _pointed(event, schema, "metadataFrom")
    return Found(metadata=found) if found else None


def correlation(event: Envelope, _schema: SchemaVersion | None) -> Found | None:
    """The correlation that stands in metadata, else the workflow run that published the event."""
    if event.correlation_id is not None:
        return None
    said = _reference(event.metadata.get("correlationId"))
    if said is None:
        workflow = event.metadata.get(METADATA_KEY)
        said = _reference(workflow.get("workflowRunId")) if isinstance(workflow, dict) else None
    return None if said is None else Found(correlation_id=said)


def causation(event: Envelope, _schema: SchemaVersion | None) -> Found | None:
    """The cause that stands in metadata."""
    said = _reference(event.metadata.get("causationId"))
    return None if said is None or event.causation_id is not None else Found(causation_id=said)


def trace(event: Envelope, _schema: SchemaVersion | None) -> Found | None:
    """The W3C form of a span context that stands in metadata."""
    if event.traceparent is not None:
        return None
    parent = traceparent_of(event.metadata.get("traceContext"))
    return None if parent is None else Found(traceparent=parent)


def promised_tags(event: Envelope, schema: SchemaVersion | None) -> Found | None:
    """Tags that the type declares as pointers into its payload, where the payload has them."""
    found = _pointed(event, schema, "tags")
    return Found(tags=found) if found else None


BUILT_IN: Final = (
    Step("event-source", event_source, 10, declared="eventSource", is_ours=True),
    Step("metadata", promised_metadata, 20, declared="metadataFrom", is_ours=True),
    Step("correlation", correlation, 30, on_metadata=True, is_ours=True),
    Step("causation", causation, 40, on_metadata=True, is_ours=True),
    Step("trace", trace, 50, on_metadata=True, is_ours=True),
    Step("tags", promised_tags, 60, declared="tags", is_ours=True),
)


def installed() -> tuple[Step, ...]:
    """The built-in steps and those that installed packages offer."""
    found = [(point.name, point.value, point) for point in entry_points(group=GROUP)]
    return gather(point for _, _, point in sorted(found, key=lambda each: each[:2]))


def gather(offers: Iterable[Offer]) -> tuple[Step, ...]:
    """The built-in steps and the offered ones, in their order.

    What cannot be loaded becomes a step that fails, so that every event it should have enriched
    says that it was not.
    """
    steps = {step.name: step for step in BUILT_IN}
    for offer in offers:
        step = _loaded(offer)
        if step.name in steps:
            step = _broken(
                f"{offer.name}#{len(steps)}", f"expected a name of its own, found {step.name} taken"
            )
        steps[step.name] = step
    return tuple(sorted(steps.values(), key=lambda step: (step.order, step.name)))


def _loaded(offer: Offer) -> Step:
    try:
        offered = offer.load()
    except Exception as error:  # noqa: BLE001  somebody else's package may raise anything
        return _broken(offer.name, f"{type(error).__name__}: {error}")
    if isinstance(offered, Step):
        return offered
    if callable(offered):
        return Step(offer.name, offered)
    return _broken(offer.name, f"expected a Step or a function, found {type(offered).__name__}")


def _broken(name: str, detail: str) -> Step:
    _log.error("enrichment_step_broken", step=name, detail=detail[:500])
    return Step(name, _Fails(detail))


@dataclass(frozen=True, slots=True)
class _Fails:
    """What stands in the place of a step that could not be loaded."""

    detail: str

    def __call__(self, _event: Envelope, _schema: SchemaVersion | None) -> Found | None:
        raise RuntimeError(self.detail)


def _pointed(event: Envelope, schema: SchemaVersion | None, declared: str) -> dict[str, str]:
    """What the type's pointers lead to, as text; what is too long for a tag is left out."""
    pointers = None if schema is None else schema.metadata.get(declared)
    found: dict[str, str] = {}
    if not isinstance(pointers, dict):
        return found
    for key, pointer in pointers.items():
        value = event.payload
        for name in _names(str(pointer)):
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str | int) and not isinstance(value, bool):
            text = str(value)
            if 0 < len(text) <= TAG_VALUE_CHARS_MAX:
                found[key] = text
    return found


@lru_cache(4096)
def _names(pointer: str) -> tuple[str, ...]:
    """The steps of a JSON Pointer."""
    return tuple(name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:])


def _reference(value: JsonValue) -> str | None:
    """A correlation or a cause as the envelope may hold it; None for anything else."""
    text = value.strip() if isinstance(value, str) else ""
    return text if text and not RULES["correlationId"](text) else None
