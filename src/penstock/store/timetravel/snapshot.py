"""Keep states on the way, so that a long history is not folded from its start again.

    key = (tenant, boundary, reducer@version · lens)     position ──▶ state

A snapshot is a cache and nothing else: it is the base for any later moment of the same key, it is
never used for an earlier one, and without any of them every answer is the same
(tests/store/timetravel/test_snapshots.py). Another version of a reducer is another key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from penstock.store.timetravel.boundary import Boundary
from penstock.store.timetravel.state import State

EVERY = 1_000  # events between two snapshots


@dataclass(frozen=True, slots=True)
class SnapshotKey:
    """Whose snapshot, and made by what."""

    boundary: Boundary
    reducer: str

    @property
    def tenant_id(self) -> str:
        return self.boundary.tenant_id


@dataclass(frozen=True, slots=True)
class Used:
    """A boundary that is asked about, and how far its snapshots reach."""

    key: SnapshotKey
    position: int


class Snapshots(Protocol):
    """Where snapshots are kept. Losing one is no failure, so `keep` never raises."""

    def nearest(self, key: SnapshotKey, *, upto: int) -> State | None:
        """The newest state at or before a position."""
        ...

    def keep(self, key: SnapshotKey, state: State) -> None: ...

    def in_use(self, *, most: int) -> Iterable[Used]:
        """The boundaries asked about last."""
        ...

    def forget(self, tenant_id: str, boundary: Boundary | None = None) -> int:
        """Drop the snapshots of one boundary, or of all; how many boundaries were dropped."""
        ...

    def forget_unused(self, *, days: int) -> int:
        """Drop those of boundaries nobody has asked about for so long."""
        ...


class NoSnapshots:
    """Keeps nothing: every state is folded from the start."""

    def nearest(self, key: SnapshotKey, *, upto: int) -> State | None:  # noqa: ARG002
        return None

    def keep(self, key: SnapshotKey, state: State) -> None:
        """Do nothing."""

    def in_use(self, *, most: int) -> Iterable[Used]:  # noqa: ARG002
        return ()

    def forget(self, tenant_id: str, boundary: Boundary | None = None) -> int:  # noqa: ARG002
        return 0

    def forget_unused(self, *, days: int) -> int:  # noqa: ARG002
        return 0
