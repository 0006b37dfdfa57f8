"""Change what has versions: the one that If-Match names and no other, or else the newest.

    GET, POST, PATCH ──▶ ETag: "3"
    PATCH, DELETE  If-Match: "3" ──▶ done, or 412 when somebody was faster

A change names fields, and null takes one away; as `application/merge-patch+json` (RFC 7396) it
reaches inside them. Triggers, workflows and schedules are all changed this way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

from starlette.requests import Request

from penstock.api.body import media_type
from penstock.api.problems import RequestRefused
from penstock.base.errors import PenstockError
from penstock.envelope.envelope import JsonObject, JsonValue

MERGE_PATCH = "application/merge-patch+json"
_TRIES = 5  # of a change that names no version, against others who change the same
_ETAG = re.compile(r'(?:W/)?"([0-9]{1,9})"', re.ASCII)


class Versioned(Protocol):
    """Whatever counts its changes."""

    @property
    def version(self) -> int: ...


_Kept = TypeVar("_Kept", bound=Versioned)


def etag(kept: Versioned) -> dict[str, str]:
    """The header that names the version of what is shown."""
    return {"ETag": f'"{kept.version}"'}


def expected_version(request: Request) -> int | None:
    """The version that `If-Match` names; None when any will do."""
    said = request.headers.get("if-match")
    if said is None or said.strip() == "*":
        return None
    found = _ETAG.fullmatch(said.strip())
    if found is None:
        raise RequestRefused(
            412,
            "if_match_unknown",
            f"expected the ETag of what is changed in If-Match, found {said[:40]!r}",
            remedy='Send the ETag that it was read with, such as "3".',
        )
    return int(found[1])


def put_on_top(
    read: Callable[[], _Kept],
    put: Callable[[_Kept, int], _Kept],
    refusal: type[PenstockError],
    expected: int | None,
) -> _Kept:
    """Change the newest version, which nobody may have changed meanwhile.

    `put` is given what was read and the version it must still have, and raises `refusal` when it
    has not. A caller who named a version hears of it; for one who did not, it is done again.
    """
    for _ in range(_TRIES - 1):
        known = read()
        try:
            return put(known, expected or known.version)
        except refusal:
            if expected is not None:
                raise
    known = read()
    return put(known, expected or known.version)


def is_merge_patch(request: Request) -> bool:
    """Whether the body of a change reaches inside the fields that it names."""
    return media_type(request) == MERGE_PATCH


def merge_patched(kept: JsonObject, patch: JsonObject) -> JsonObject:
    """What is kept, changed as RFC 7396 says."""
    return cast("JsonObject", _merged(kept, patch))


def _merged(target: JsonValue, patch: JsonValue) -> JsonValue:
    if not isinstance(patch, dict):
        return patch
    result: JsonObject = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result
