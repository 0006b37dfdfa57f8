"""Declare event types in Python: a payload model, and what the type promises beside it.

A vocabulary is a page of such declarations; nothing here runs at publish time. `registry.Registry`
is built from these and from what was registered over HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.envelope.envelope import Severity

Status = Literal["draft", "active", "deprecated"]


class Payload(BaseModel):
    """What an event of one type carries. Fields are camelCase on the wire.

    Unknown fields are kept, not refused: a publisher may add one before the type declares it.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="allow", alias_generator=to_camel, populate_by_name=True
    )


@dataclass(frozen=True, slots=True)
class EventType:
    """One declared event type at its newest version."""

    name: str
    payload: type[Payload]
    sources: tuple[str, ...] = ()
    severity: Severity | None = None  # None: derived by the rules of registry.insight
    version: int = 1
    tags: dict[str, str] = field(default_factory=dict)  # tag key -> JSON Pointer
    links: dict[str, str] = field(default_factory=dict)  # link kind -> JSON Pointer
    needs_uuid7: bool = False
    derived_requires: tuple[str, ...] | None = None  # wire fields `derived` needs; None: no derived
    example: dict[str, Any] | None = None

    @property
    def purpose(self) -> str:
        """The first line of the payload's docstring."""
        return (self.payload.__doc__ or "").strip().splitlines()[0]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A named page of event types."""

    name: str
    events: tuple[EventType, ...]
