"""Read server-sent events out of bytes as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """One server-sent event; `data` is empty when only the place moved."""

    data: str
    event: str = "message"
    id: str | None = None


def messages(chunks: Iterable[bytes]) -> Iterator[Message]:
    """Every event that is complete; what is cut off at the end was not sent whole."""
    fields: dict[str, list[str]] = {}
    for line in _lines(chunks):
        if line:
            name, _, value = line.partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))
            continue
        if "data" in fields or "id" in fields:
            yield Message(
                data="\n".join(fields.get("data", [])),
                event=fields.get("event", ["message"])[-1],
                id=fields["id"][-1] if "id" in fields else None,
            )
        fields = {}


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    # Only these bytes end a line. `str.splitlines` knows more, and JSON text may hold them.
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r").decode(errors="replace")
