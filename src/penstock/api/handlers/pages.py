"""Show the front page, and the description of this API."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.context import house_of
from penstock.api.reply import reply

_STYLE = re.compile(rb"<style>(.*?)</style>", re.DOTALL)


async def home(request: Request) -> Response:
    """What this is, how to publish, where the reference is, at the address we listen on."""
    page, policy = _page()
    here = house_of(request).settings.base_url.encode()
    page = page.replace(b"http://127.0.0.1:8700", here)
    return Response(page, 200, {"Content-Security-Policy": policy}, "text/html")


async def openapi(request: Request, _caller: Caller) -> Response:
    """This API as OpenAPI 3.1."""
    return reply(request.app.openapi())


@cache
def _page() -> tuple[bytes, str]:
    """The page, and a policy that lets nothing load and nothing run; only its own style applies."""
    page = resources.files("penstock.api").joinpath("static", "index.html").read_bytes()
    digests = [base64.b64encode(hashlib.sha256(style).digest()) for style in _STYLE.findall(page)]
    styles = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
    policy = f"default-src 'none'; style-src {styles}; frame-ancestors 'none'; base-uri 'none'"
    return page, f"{policy}; form-action 'none'"
