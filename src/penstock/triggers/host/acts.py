"""Write down what operators did, and tell live streams of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import TypeAdapter

from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject
from penstock.triggers.book.rows import Row
from penstock.triggers.delivery import Act, ActKind, ActOutcome, Target

_ACT: Final = TypeAdapter(Act)
_PAYLOAD_BYTES_MAX: Final = 7_500  # of a notification, which may have 8,000
_FRAMES: Final = {
    (Target.EVENT, ActKind.CANCEL): "retry.event.source.cancelled",
    (Target.EVENT, ActKind.FORCE): "retry.event.source.forced",
    (Target.DELIVERY, ActKind.CANCEL): "retry.trigger.delivery.cancelled",
    (Target.DELIVERY, ActKind.FORCE): "retry.trigger.delivery.forced",
}


def act_row(act: Act) -> Row:
    """An act as it is recorded: its words, who did it, and when."""
    return _ACT.dump_json(act).decode(), act.by, act.at


def act_of(text: str) -> Act:
    """The act that was recorded."""
    return _ACT.validate_json(text)


def notice(number: int, acts: Sequence[Act], outcomes: Sequence[ActOutcome]) -> str:
    """What other processes hear of a pass: its number, and a frame for every retry it touched.

    When the frames are too many for a notification, only the number is told.
    """
    done = {outcome.act_id for outcome in outcomes if outcome.is_done}
    frames: list[JsonObject] = [
        {
            "type": _FRAMES[act.target, act.kind],
            "id": act.target_id,
            "tenantId": act.tenant_id,
            "by": act.by,
        }
        for act in acts
        if act.id in done and (act.target, act.kind) in _FRAMES
    ]
    text = encode({"pass": number, "frames": list(frames)})
    return (text if len(text) <= _PAYLOAD_BYTES_MAX else encode({"pass": number})).decode()
