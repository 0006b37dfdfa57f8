"""Put secrets where requests need them, at the last moment: definitions only ever name them.

    {"authorization": {"secret": "airflow-token"}}  ──▶  {"authorization": "Bearer …"}

`Secrets` gives every value that is valid now, the newest first: two of them while one replaces the
other. Signatures use all, headers the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from penstock.envelope.envelope import JsonObject
from penstock.workflows.launch.errors import SecretUnknown

Secrets: TypeAlias = Callable[[str, str], Sequence[str]]  # (tenant, name): values, newest first


def no_secrets(_tenant_id: str, _name: str) -> Sequence[str]:
    """Where nobody keeps secrets, there are none."""
    return ()


def secret_values(secrets: Secrets, tenant_id: str, name: str) -> Sequence[str]:
    """Every valid value of a secret; SecretUnknown when there is none."""
    values = secrets(tenant_id, name)
    if not values:
        raise SecretUnknown(f"expected a secret named {name}, found none")
    return values


def filled_headers(headers: JsonObject, secrets: Secrets, tenant_id: str) -> dict[str, str]:
    """Headers with their secrets, under names in lower case."""
    filled: dict[str, str] = {}
    for name, value in headers.items():
        if isinstance(value, dict):
            filled[name.lower()] = secret_values(secrets, tenant_id, str(value.get("secret")))[0]
        elif value is not None:
            filled[name.lower()] = str(value)
    return filled
