"""Make personal data unreadable between judging and storing: the port that the store implements.

    judge ──▶ Judged ── hide ──▶ Judged ──▶ settle       marked fields are ciphertext from here on
    judge ──▶ Accepted ── keyed ──▶ Accepted             so that the door can compare with the log

The judge stays pure: keys are somebody else's. Whoever settles a lot hides it first, by the
registry it was judged by. A type without marks costs one look into a set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from penstock.ingress.lot import Judged
from penstock.ingress.verdict import Accepted
from penstock.registry.registry import Registry


class Protect(Protocol):
    """Whatever can hide what a schema marks as personal."""

    def hide(self, judged: Sequence[Judged], registry: Registry) -> Sequence[Judged]:
        """The messages as they may be stored; StoreUnavailable when the keys cannot be had."""
        ...

    def may_ask(self, types: Iterable[object]) -> bool:
        """Whether hiding events of these types may ask for keys, by the registry last hidden by."""
        ...

    def keyed(self, accepted: Accepted, registry: Registry) -> Accepted:
        """The event with the content hash that the log keeps for it; nothing is encrypted yet."""
        ...


class NothingPersonal:
    """Hides nothing: for a host whose registry has no marked type, such as one in a test."""

    def hide(self, judged: Sequence[Judged], _registry: Registry) -> Sequence[Judged]:
        return judged

    def may_ask(self, _types: Iterable[object]) -> bool:
        return False

    def keyed(self, accepted: Accepted, _registry: Registry) -> Accepted:
        return accepted


NOTHING_PERSONAL: Protect = NothingPersonal()
