"""Know the reducers there are: the built-in ones, and those that installed packages offer.

    [project.entry-points."penstock.reducers"]
    issue = "our_package.reducers:issue"

A package whose reducer cannot be loaded spoils nothing but that reducer; whoever asks for it hears
why.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from typing import Protocol

from penstock.base.errors import QueryInvalid
from penstock.store.timetravel.boundary import Boundary
from penstock.store.timetravel.reducer import BUILT_IN, LAST_WRITE_WINS, Reducer

GROUP = "penstock.reducers"


class Offer(Protocol):
    """One entry point of a package."""

    @property
    def name(self) -> str: ...

    def load(self) -> object: ...


class Roster:
    """Reducers by name, and the ones that could not be had, with the reason."""

    def __init__(
        self, reducers: Iterable[Reducer] = BUILT_IN, broken: Mapping[str, str] | None = None
    ) -> None:
        self._reducers = {reducer.name: reducer for reducer in reducers}
        self.broken = dict(broken or {})

    @property
    def names(self) -> list[str]:
        return sorted(self._reducers)

    def find(self, name: str | None, boundary: Boundary) -> Reducer:
        """The reducer by that name, by default the built-in one, if it fits the boundary."""
        found = self._reducers.get(LAST_WRITE_WINS.name if name is None else name)
        if found is None:
            raise self._unknown(name or "")
        if not found.fits(boundary):
            raise QueryInvalid(
                f"expected one of the tags {', '.join(found.tags)} for the reducer {found.name},"
                f" found {', '.join(key for key, _ in boundary.tags) or 'none'}",
                parameter="reducer",
            )
        return found

    def by_reference(self, reference: str) -> Reducer | None:
        """The reducer of that name in just that version."""
        found = self._reducers.get(reference.partition("@")[0])
        return found if found is not None and found.reference == reference else None

    def _unknown(self, name: str) -> QueryInvalid:
        if name in self.broken:
            return QueryInvalid(
                f"expected a reducer that loads, found {name}: {self.broken[name]}",
                parameter="reducer",
                remedy="Correct the package that offers it, and start the server again.",
            )
        near = difflib.get_close_matches(name[:80], self.names, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return QueryInvalid(
            f"expected one of {', '.join(self.names)}, found {name[:80]!r}{hint}",
            parameter="reducer",
            remedy=f"Packages offer reducers as entry points of the group `{GROUP}`.",
        )


def gather(offers: Iterable[Offer]) -> Roster:
    """The built-in reducers and those of the offers that hold one; a name is given once."""
    found = {reducer.name: reducer for reducer in BUILT_IN}
    broken: dict[str, str] = {}
    for offer in offers:
        try:
            offered = offer.load()
        except Exception as error:  # noqa: BLE001  somebody else's package may raise anything
            broken[offer.name] = f"{type(error).__name__}: {error}"
            continue
        if not isinstance(offered, Reducer):
            broken[offer.name] = f"expected a Reducer, found {type(offered).__name__}"
        elif offered.name in found:
            broken[offer.name] = f"expected a name of its own, found {offered.name} taken"
        else:
            found[offered.name] = offered
    return Roster(found.values(), broken)


def installed() -> Roster:
    """The reducers of this installation."""
    ordered = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return gather(ordered)
