"""Keep the services that steps may call: where they are, and what is sent with every call.

A header's value is text, or `{"secret": name}`, which is looked up when the request is made. What
carries a credential by its name must be a secret: whoever may read workflows may read this page.
"""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.acts import record
from penstock.api.asking import named
from penstock.api.body import body_invalid
from penstock.api.context import house_of
from penstock.api.document import read_form
from penstock.api.reply import reply
from penstock.base.clock import format_instant
from penstock.base.errors import Fault
from penstock.envelope.envelope import JsonObject
from penstock.workflows.forms import AnyObject, Form, model_wire
from penstock.workflows.port import Service
from penstock.workflows.steps import SecretRef

_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE = re.compile(r"[\x20-\x7e]{0,2000}")
_CREDENTIAL = re.compile(r"authorization|cookie|token|secret|password|api-?key", re.IGNORECASE)


class NewService(Form):
    """A service to register, or what it is from now on."""

    base_url: str = Field(max_length=2_000, description="http or https, up to where paths begin")
    display_name: str = Field("", max_length=200)
    kind: str = Field("external", pattern=r"^[a-z0-9-]{1,50}$")
    status: Literal["unknown", "healthy", "degraded", "unreachable"] | None = Field(
        None, description="how it is; left out: what is known, unknown for another address"
    )
    health_path: str | None = Field(None, pattern=r"^/", max_length=2_000)
    headers: dict[str, str | SecretRef] = Field(default_factory=dict, max_length=50)
    metadata: AnyObject = Field(default_factory=dict)

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, text: str) -> str:
        fault = url_fault(text)
        if fault is not None:
            raise PydanticCustomError("url", "{detail}", {"detail": fault})
        return text

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, headers: dict[str, Any]) -> dict[str, Any]:
        for name, value in headers.items():
            if _HEADER.fullmatch(name) is None:
                raise PydanticCustomError("header", "expected names of headers, found another")
            if isinstance(value, str) and _VALUE.fullmatch(value) is None:
                raise PydanticCustomError("header", "expected printable ASCII, found other text")
            if isinstance(value, str) and _CREDENTIAL.search(name):
                detail = f'expected {{"secret": …}} for {name}, found its value'
                raise PydanticCustomError("header", "{detail}", {"detail": detail})
        return headers


def url_fault(text: str) -> str | None:
    """Why a text is no base address, or None. Where it leads is looked at when it is called."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return "expected an address like https://metastore.example, found none"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "expected an address like https://metastore.example, found none"
    if parts.username is not None or parts.password is not None:
        return "expected an address without a name and password, found one with them"
    if parts.query or parts.fragment or "?" in text or "#" in text:
        return "expected an address without a query and a fragment, found one with them"
    if not text.isascii() or not text.isprintable() or " " in text:
        return "expected an address in printable ASCII, found other characters"
    return None


async def list_services(request: Request, caller: Caller) -> Response:
    """Every service that steps may call, by slug."""
    book = house_of(request).workflow_book.services
    found = await run_in_threadpool(book.list, caller.tenant_id)
    return reply({"data": {"services": [_shown(each) for each in found]}})


async def show_service(request: Request, caller: Caller) -> Response:
    """One service."""
    slug, book = named(request, "slug", "service"), house_of(request).workflow_book.services
    found = await run_in_threadpool(book.get, caller.tenant_id, slug)
    return reply({"data": {"service": _shown(found)}})


async def put_service(request: Request, caller: Caller) -> Response:
    """Register a service, or change the one of that name."""
    house, slug = house_of(request), named(request, "slug", "service")
    if _SLUG.fullmatch(slug) is None:
        raise body_invalid([Fault("", "expected a slug of letters, digits, - and _ in the path")])
    wanted, book = await read_form(request, NewService), house.workflow_book.services
    known = await run_in_threadpool(book.service, caller.tenant_id, slug)
    service = _service(caller.tenant_id, slug, wanted, known)
    kept = await run_in_threadpool(book.put, service, by=caller.name)
    word = "registered" if known is None else "updated"
    await record(house, caller, f"penstock.service.{word}", _said(kept))
    return reply({"data": {"service": _shown(kept)}}, 201 if known is None else 200)


async def delete_service(request: Request, caller: Caller) -> Response:
    """Forget a service; steps that call it fail from now on, and say so."""
    house, slug = house_of(request), named(request, "slug", "service")
    book = house.workflow_book.services
    known = await run_in_threadpool(book.get, caller.tenant_id, slug)
    await run_in_threadpool(book.delete, caller.tenant_id, slug)
    await record(house, caller, "penstock.service.deleted", _said(known))
    return Response(status_code=204)


def _service(tenant_id: str, slug: str, wanted: NewService, known: Service | None) -> Service:
    same_place = known is not None and known.base_url == wanted.base_url
    said = model_wire(wanted)
    headers = said["headers"]
    return Service(
        tenant_id,
        slug,
        wanted.base_url,
        display_name=wanted.display_name,
        kind=wanted.kind,
        status=wanted.status or (known.status if known and same_place else "unknown"),
        health_path=wanted.health_path,
        headers=headers if isinstance(headers, dict) else {},
        metadata=wanted.metadata,
    )


def _said(service: Service) -> JsonObject:
    return {"serviceSlug": service.slug, "baseUrl": service.base_url, "status": service.status}


def _shown(service: Service) -> JsonObject:
    at = service.updated_at
    return {
        "slug": service.slug,
        "baseUrl": service.base_url,
        "displayName": service.display_name,
        "kind": service.kind,
        "status": service.status,
        "healthPath": service.health_path,
        "headers": service.headers,
        "metadata": service.metadata,
        "updatedAt": None if at is None else format_instant(at),
    }
