"""Read a request's body: its kind first, then its bytes within the limits, then one strict decoder.

415 another kind · 408 too slow · 413 too large (counted by `edge` as it comes) · 400 not JSON
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from penstock.api.problems import RequestRefused
from penstock.base.errors import Fault
from penstock.base.faults import form_faults
from penstock.envelope.codec import decode

JSON = "application/json"
_BODY_SECONDS = 30
_NODES_MAX = 20_000
_DEPTH_MAX = 80  # a schema may nest deeper than an event
_SHOWN = 5  # faults in the sentence; `errors` has them all
Model = TypeVar("Model", bound=BaseModel)


def media_type(request: Request) -> str:
    """The Content-Type without its parameters, in lower case; empty when there is none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def require_media_type(request: Request, *accepted: str) -> str:
    """The body's media type; refused when it is another one.

    A browser sends some kinds of body across sites without asking first; JSON is none of them.
    """
    found = media_type(request)
    if found in accepted:
        return found
    kinds = " or ".join(accepted)
    raise RequestRefused(
        415,
        "media_type_unsupported",
        f"expected Content-Type {kinds}, found {found[:80] or 'none'}",
        remedy=f"Send the body as {accepted[0]} and say so in Content-Type.",
        headers={"Accept": ", ".join(accepted)},
    )


async def read_bytes(request: Request) -> bytes:
    """The whole body, if it arrives in time."""
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await request.body()
    except TimeoutError:
        raise RequestRefused(
            408,
            "body_too_slow",
            f"expected the whole body within {_BODY_SECONDS} s, found only a part of it",
            remedy="Send the request again, or in smaller pieces.",
            headers={"Connection": "close"},
        ) from None


async def read_model(request: Request, model: type[Model], *accepted: str) -> Model:
    """The body as one of our models; every fault is named with its pointer."""
    require_media_type(request, *(accepted or (JSON,)))
    raw = await read_bytes(request)
    tree = decode(raw, bytes_max=len(raw), nodes_max=_NODES_MAX, depth_max=_DEPTH_MAX)
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        raise body_invalid(form_faults(error, tree)) from None


def body_invalid(faults: Sequence[Fault]) -> RequestRefused:
    """The answer to a body that does not fit."""
    said = "; ".join(f"{fault.pointer or '/'}: {fault.detail}" for fault in faults[:_SHOWN])
    return RequestRefused(
        422,
        "body_invalid",
        said,
        remedy="Correct the fields that `errors` names; /openapi.json has the shape.",
        faults=tuple(faults),
    )
