"""Make one message out of a CloudEvent in binary mode: attributes in headers, data in the body.

    ce-id, ce-type, … + body ──▶ {"id": …, "type": …, "data": <the body's own bytes>}

The message is what is judged, and what is kept when it is refused, so a dead letter holds the
headers too. Pure; tests/api/test_binary.py.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

from penstock.base.errors import Fault, NotInProfile
from penstock.catalog import cloudevents
from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import JsonObject
from penstock.ingress.door import Item

MARK = "ce-specversion"


def read_binary(headers: Mapping[str, str], body: bytes) -> tuple[Item, tuple[Fault, ...]]:
    """The message, and what is wrong with its headers, if anything."""
    try:
        tree = cloudevents.from_headers(headers, body)
    except NotInProfile:
        return Item(_whole(headers, body)), ()
    if isinstance(tree, tuple):
        return Item(encode({**_attributes(headers), "data_base64": _text(body)})), tree
    attributes = {name: value for name, value in tree.items() if name != "data"}
    return Item(_joined(attributes, body) if body else encode(tree), tree), ()


def _whole(headers: Mapping[str, str], body: bytes) -> bytes:
    """A message that is refused for what is wrong with its data.

    Data that is JSON by itself, and only too deep or too large with attributes around it, is shown
    with them. Data that is no JSON stays alone: put between attributes it could pass for some.
    """
    try:
        decode(body)
    except NotInProfile:
        return body
    return _joined(_attributes(headers), body)


def _joined(attributes: JsonObject, data: bytes) -> bytes:
    return encode(attributes)[:-1] + b',"data":' + data + b"}"


def _attributes(headers: Mapping[str, str]) -> JsonObject:
    """The headers that make up the event, as they came."""
    found: JsonObject = {}
    for header, value in headers.items():
        name = header.lower()
        if name == "content-type":
            found["datacontenttype"] = value
        elif name.startswith("ce-"):
            found[name.removeprefix("ce-")] = value
    return found


def _text(body: bytes) -> str:
    return base64.b64encode(body).decode()
