"""Hold the keys of subjects: the port, and what a subject's keys amount to.

A subject has one live key at most. Erasing takes it away and leaves when; whoever comes back gets
the next number. `in_memory` is the specification, `on_postgres` keeps them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple, Protocol, TypeAlias

from penstock.store.privacy.cipher import KeyPlace

Subject: TypeAlias = tuple[str, str]  # tenant, pseudonym


class Standing(NamedTuple):
    """What there is of one subject."""

    newest: int = 0  # the highest number any of its keys has had
    wrapped: bytes | None = None  # the live key, under that number
    erased_at: datetime | None = None  # when it was last erased


class SubjectKeys(Protocol):
    """Where wrapped keys live. StoreUnavailable when it is away."""

    def standings(self, subjects: Collection[Subject]) -> dict[Subject, Standing]:
        """What there is of each of these; one that was never seen is left out."""
        ...

    def create(self, wrapped: Mapping[KeyPlace, bytes]) -> None:
        """Keep new keys; one whose place is taken meanwhile is not kept."""
        ...

    def find(self, places: Collection[KeyPlace]) -> dict[KeyPlace, bytes]:
        """The wrapped keys that are still there."""
        ...
