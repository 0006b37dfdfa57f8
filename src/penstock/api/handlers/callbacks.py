"""Hear from the receiver of a webhook that its work is done, so that the step that waits goes on.

The answer is an event in the log under an id that follows from the message: the first word counts,
the same word again is harmless, and another word is refused.
"""

from __future__ import annotations

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.acts import SOURCE
from penstock.api.asking import named
from penstock.api.context import house_of
from penstock.api.document import read_form
from penstock.api.problems import RequestRefused, answer, problem_of_rejected
from penstock.api.reply import reply
from penstock.base.errors import NotFound
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject
from penstock.ingress.door import Item
from penstock.ingress.verdict import Reason, Via
from penstock.workflows.forms import AnyJson, Form
from penstock.workflows.launch.callbacks import MESSAGE, RECEIVED, callback_id


class Said(Form):
    """What became of the work that a webhook asked for."""

    succeeded: bool = Field(description="false fails the step")
    output: AnyJson = Field(None, description="what the step's output becomes")
    detail: str | None = Field(None, max_length=2_000, pattern=r"^[^\x00]*$")


async def call_back(request: Request, caller: Caller) -> Response:
    """Say what became of the work that a webhook asked for."""
    house, message = house_of(request), named(request, "message_id", "message")
    if MESSAGE.fullmatch(message) is None:
        raise NotFound("expected the webhook-id of a message, found other text")
    said = await read_form(request, Said)
    event: JsonObject = {
        "id": callback_id(message),
        "type": RECEIVED,
        "source": SOURCE,
        "payload": {
            "messageId": message,
            "succeeded": said.succeeded,
            "output": said.output,
            "detail": said.detail,
            "actor": caller.name,
            "actorTokenId": caller.token_id,
        },
    }
    item = Item(raw=encode(event), tree=event)
    (outcome,) = await house.door.publish_async([item], tenant_id=caller.tenant_id, via=Via.SYSTEM)
    if outcome.rejected is None:
        return reply({"data": {"messageId": message, "status": outcome.status}}, 202)
    if outcome.rejected.reason is Reason.ID_CONFLICT:
        raise RequestRefused(
            409,
            "callback_conflict",
            "expected the first word about this message, found that another was said before",
            remedy="The first word counts; replay the run to have the work done again.",
        )
    return answer(problem_of_rejected(outcome.rejected), request.state.instance)
