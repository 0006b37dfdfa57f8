"""Name a place in a document as a JSON Pointer (RFC 6901)."""

from __future__ import annotations

from collections.abc import Iterable


def pointer(path: Iterable[str | int]) -> str:
    """A JSON Pointer to the place that `path` leads to."""
    return "".join(f"/{pointer_step(step)}" for step in path)


def pointer_step(key: str | int) -> str:
    """One key or index as it stands in a JSON Pointer."""
    return str(key).replace("~", "~0").replace("/", "~1")
