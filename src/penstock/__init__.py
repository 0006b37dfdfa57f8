"""Penstock: every change in a data platform as an event you can trust, query, replay and act on.

    from penstock import Publisher

    with Publisher(source="metastore.api") as publisher:
        publisher.publish("metastore.record.updated", payload={"namespace": "flags", "key": "a"})

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.base.errors import (
        AccessDenied,
        AppendConflict,
        EventRefused,
        Fault,
        PenstockError,
        QueueUnavailable,
    )
    from penstock.envelope.context import (
        WorkflowContext,
        carry,
        get_workflow_event_context,
        to_environment,
        workflow_event_context,
    )
    from penstock.envelope.envelope import Envelope
    from penstock.publish.bus import EventBus
    from penstock.publish.cause import handling
    from penstock.publish.port import Outcome, Sink, Undelivered
    from penstock.publish.publisher import Publisher
    from penstock.publish.subscription import Subscription
    from penstock.registry.declare import EventType, Payload, Vocabulary
    from penstock.store.append.decision import adecide, decide
    from penstock.store.append.over_http import RemoteStore
    from penstock.store.query import Query
    from penstock.triggers.listening import listening_to

__all__ = [
    "AccessDenied",
    "AppendConflict",
    "Envelope",
    "EventBus",
    "EventRefused",
    "EventType",
    "Fault",
    "Outcome",
    "Payload",
    "PenstockError",
    "Publisher",
    "Query",
    "QueueUnavailable",
    "RemoteStore",
    "Sink",
    "Subscription",
    "Undelivered",
    "Vocabulary",
    "WorkflowContext",
    "adecide",
    "carry",
    "decide",
    "get_workflow_event_context",
    "handling",
    "listening_to",
    "to_environment",
    "workflow_event_context",
]

_HOMES = {
    "base.errors": (
        "AccessDenied",
        "AppendConflict",
        "EventRefused",
        "Fault",
        "PenstockError",
        "QueueUnavailable",
    ),
    "envelope.context": (
        "WorkflowContext",
        "carry",
        "get_workflow_event_context",
        "to_environment",
        "workflow_event_context",
    ),
    "envelope.envelope": ("Envelope",),
    "publish.bus": ("EventBus",),
    "publish.cause": ("handling",),
    "publish.port": ("Outcome", "Sink", "Undelivered"),
    "publish.publisher": ("Publisher",),
    "publish.subscription": ("Subscription",),
    "registry.declare": ("EventType", "Payload", "Vocabulary"),
    "store.append.decision": ("adecide", "decide"),
    "store.append.over_http": ("RemoteStore",),
    "store.query": ("Query",),
    "triggers.listening": ("listening_to",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker knows the names above, and that there are no others

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value: object = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value  # found without this function from now on
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
