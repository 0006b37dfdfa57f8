"""Hand out tokens, and take them back."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from penstock.cli import report
from penstock.cli.connect import connect
from penstock.cli.fields import inner, rows, text, words
from penstock.cli.options import AsJson
from penstock.envelope.envelope import JsonObject, JsonValue

app = typer.Typer(
    help="Hand out tokens and take them back.", no_args_is_help=True, rich_markup_mode=None
)

_PATH = "/admin/tokens"
Name = Annotated[str, typer.Argument(metavar="NAME", help="Who will use it.")]
Scopes = Annotated[
    list[str], typer.Option("--scope", help="What it may do, such as events:publish; repeat it.")
]
TenantId = Annotated[str | None, typer.Option("--tenant", help="Whose events; your own.")]
ExpiresAt = Annotated[str | None, typer.Option(help="When it ends (RFC 3339); never.")]


@app.command("create")
def create(
    name: Name,
    scopes: Scopes,
    tenant: TenantId = None,
    expires_at: ExpiresAt = None,
    as_json: AsJson = False,
) -> None:
    """Make a token. Its secret is printed now and never again."""
    wanted: list[JsonValue] = [*scopes]
    body: JsonObject = {"name": name, "scopes": wanted}
    given = {"tenantId": tenant, "expiresAt": expires_at}
    body |= {field: value for field, value in given.items() if value is not None}
    with connect() as client:
        token = inner(client.post(_PATH, body), "token")
    if as_json:
        report.document(token)
        return
    report.line(text(token, "secret"))
    report.say(f"token {text(token, 'id')} for {name}; this secret is not shown again")


@app.command("list")
def list_tokens(as_json: AsJson = False) -> None:
    """List tokens, without secrets: id, name, tenant, scopes, created, state."""
    with connect() as client:
        data = client.get(_PATH)
    if as_json:
        report.document(data)
        return
    report.columns(
        [
            [
                *(text(row, field) for field in ("id", "name", "tenantId")),
                ",".join(words(row, "scopes")),
                text(row, "createdAt"),
                _state(row),
            ]
            for row in rows(data, "tokens")
        ]
    )


@app.command("revoke")
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The token's id.")],
    as_json: AsJson = False,
) -> None:
    """Take a token back; it stops working everywhere within seconds."""
    with connect() as client:
        client.delete(f"{_PATH}/{quote(token_id, safe='')}")
    if as_json:
        report.document({"id": token_id, "revoked": True})
    else:
        report.line("revoked", token_id)


def _state(token: JsonObject) -> str:
    if text(token, "revokedAt"):
        return f"revoked {text(token, 'revokedAt')}"
    ends = text(token, "expiresAt")
    return f"until {ends}" if ends else "active"
