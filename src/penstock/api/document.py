"""Read a body that people write: an object whose room checks it, or one of our forms.

body ── read_object ──▶ {…} ── merged(kept, given) ──▶ the whole document, for a PATCH
     └─ read_form ──▶ a frozen form; every fault is named with its pointer
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import ValidationError
from starlette.requests import Request

from penstock.api.body import JSON, body_invalid, read_bytes, require_media_type
from penstock.api.versions import merge_patched
from penstock.base.errors import Fault
from penstock.base.faults import form_faults
from penstock.envelope.codec import decode
from penstock.envelope.envelope import JsonObject
from penstock.workflows.forms import Form

_NODES_MAX = 20_000
_DEPTH_MAX = 80  # a schema inside a definition may nest deeper than an event
AnyForm = TypeVar("AnyForm", bound=Form)


async def read_object(request: Request, *accepted: str) -> JsonObject:
    """The body as an object, unchecked beyond that; JSON unless other kinds are accepted."""
    require_media_type(request, *(accepted or (JSON,)))
    raw = await read_bytes(request)
    tree = decode(raw, bytes_max=len(raw), nodes_max=_NODES_MAX, depth_max=_DEPTH_MAX)
    if not isinstance(tree, dict):
        raise body_invalid([Fault("", "expected an object, found something else")])
    return tree


async def read_form(request: Request, form: type[AnyForm]) -> AnyForm:
    """The body as one of our forms."""
    document = await read_object(request)
    try:
        return form.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        raise body_invalid(form_faults(error, document)) from None


def merged(
    kept: JsonObject, given: JsonObject, form: type[Form], *, deeply: bool = False
) -> JsonObject:
    """What is kept with what is given in its place; null takes a field of the form away.

    A field that the form does not have stays, so that it is refused and not passed over. `deeply`,
    what is given is a merge patch and reaches inside the fields.
    """
    if not given:
        raise body_invalid([Fault("", "expected at least one field to change, found none")])
    known = {field.alias or name for name, field in form.model_fields.items()}
    unknown = {name: value for name, value in given.items() if name not in known}
    if deeply:
        return merge_patched(kept, given) | unknown
    gone = {name for name, value in given.items() if value is None and name in known}
    return {name: value for name, value in {**kept, **given}.items() if name not in gone}


def take(document: JsonObject, name: str, *words: str) -> str | None:
    """Take a word of a closed set out of a document; None when it is not there."""
    if name not in document:
        return None
    found = document.pop(name)
    if not isinstance(found, str) or found not in words:
        raise body_invalid(
            [Fault(f"/{name}", f"expected {' or '.join(words)}, found something else")]
        )
    return found
