"""List every setting: its value, where that came from, and what it means."""

from __future__ import annotations

import os

from pydantic import SecretStr

from penstock.base.settings import ALIASES, Settings, load_settings
from penstock.cli import report
from penstock.cli.options import AsJson
from penstock.envelope.envelope import JsonObject, JsonValue

_HIDDEN = "(set, not shown)"


def settings(as_json: AsJson = False) -> None:
    """Show every setting with its meaning."""
    rows = table(load_settings(os.environ))
    if as_json:
        report.document({"settings": [*rows]})
        return
    report.columns(
        [
            [
                str(row["variable"]),
                "" if row["value"] is None else str(row["value"]),
                str(row["from"]),
                str(row["meaning"]),
            ]
            for row in rows
        ]
    )


def table(found: Settings) -> list[JsonObject]:
    """One row per setting; a secret is never part of it."""
    return [
        {
            "variable": f"PENSTOCK_{name.upper()}",
            "aliases": [alias for alias, target in ALIASES.items() if target == name],
            "value": _shown(getattr(found, name)),
            "default": _shown(field.default),
            "from": "environment" if name in found.model_fields_set else "default",
            "meaning": field.description or "",
        }
        for name, field in Settings.model_fields.items()
    ]


def _shown(value: object) -> JsonValue:
    if value is None or isinstance(value, bool | int):
        return value
    return _HIDDEN if isinstance(value, SecretStr) else str(value)
