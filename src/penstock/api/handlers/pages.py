"""Show the front page, the page of the registry, and the description of this API.

A page is one file that loads nothing from anywhere. Its policy lets exactly its own style and
script apply, by their hashes; the script may ask this server, with the token its reader gives it.
"""

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
_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


async def home(request: Request) -> Response:
    """What this is, how to publish, where the reference is; or every event type, if asked for.

    Both at one address: it is the only one beside the two of health that answers without a token.
    """
    if request.query_params.get("page") == "registry":
        page, policy = _page("registry.html")
        return Response(page, 200, {"Content-Security-Policy": policy}, "text/html")
    page, policy = _page("index.html")
    here = house_of(request).settings.base_url.encode()
    page = page.replace(b"http://127.0.0.1:8700", here)
    return Response(page, 200, {"Content-Security-Policy": policy}, "text/html")


async def openapi(request: Request, _caller: Caller) -> Response:
    """This API as OpenAPI 3.1."""
    return reply(request.app.openapi())


@cache
def _page(name: str) -> tuple[bytes, str]:
    """A page, and a policy under which only its own style applies and its own script runs."""
    page = resources.files("penstock.api").joinpath("static", name).read_bytes()
    allowed = f"default-src 'none'; style-src {_hashes(_STYLE, page)}"
    if _SCRIPT.search(page):
        allowed += f"; script-src {_hashes(_SCRIPT, page)}; connect-src 'self'"
    return page, f"{allowed}; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


def _hashes(part: re.Pattern[bytes], page: bytes) -> str:
    digests = [base64.b64encode(hashlib.sha256(text).digest()) for text in part.findall(page)]
    return " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
