"""Write answers: JSON by our one encoder, and the link to the next page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue


def reply(
    value: JsonValue, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """The value as an `application/json` response."""
    return Response(encode(value), status, headers, "application/json")


def page_of(next_cursor: str | None, has_more: bool, limit: int) -> JsonObject:
    """The `page` member of a list."""
    return {"nextCursor": next_cursor, "hasMore": has_more, "limit": limit}


def next_link(request: Request, cursor: str | None) -> dict[str, str]:
    """A `Link: rel="next"` header that repeats the request with another cursor."""
    if cursor is None:
        return {}
    kept = [(key, value) for key, value in _pairs(request) if key != "cursor"]
    # The path comes from the route that matched, never from what the client calls this server.
    target = f"{request.scope['route'].path_format}?{urlencode([*kept, ('cursor', cursor)])}"
    return {"Link": f'<{target}>; rel="next"'}


def _pairs(request: Request) -> Iterable[tuple[str, str]]:
    return request.query_params.multi_items()
