"""Answer which event types exist: every version of every type, at one revision.

    find("asset.produced", None)   the newest active version
    find("asset.produced", 1)      that version, whatever its status
    nearest("asset.prodcued")      "asset.produced"

A registry never changes; a newer revision is another registry. It travels to executors by pickle,
and leaves the upcasters at home: they are for readers, and executors judge.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, TypeAlias

from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.schema import SchemaVersion, schema_hash
from penstock.registry.upcast import Upcasted, UpcastFailed, Upcasts

Mode: TypeAlias = Literal["strict", "open"]

_NAME_MAX = 200  # comparing names costs more the longer they are


class Registry:
    """Every schema version at one revision. Immutable and picklable."""

    __slots__ = ("_by_version", "_newest", "_types", "mode", "revision", "upcasts", "versions")

    def __init__(
        self,
        versions: Iterable[SchemaVersion],
        *,
        mode: Mode,
        revision: int = 0,
        upcasts: Upcasts | None = None,
    ) -> None:
        self.versions: tuple[SchemaVersion, ...] = tuple(
            sorted(versions, key=lambda each: (each.event_type, each.version))
        )
        self.mode: Mode = mode
        self.revision = revision
        self.upcasts = upcasts or Upcasts()
        self._by_version = {(each.event_type, each.version): each for each in self.versions}
        # Sorted by version, so the last active one wins.
        self._newest = {each.event_type: each for each in self.versions if each.status == "active"}
        self._types = tuple(dict.fromkeys(each.event_type for each in self.versions))

    def find(self, event_type: str, version: int | None) -> SchemaVersion | None:
        """That version whatever its status; without a version, the newest active one."""
        if version is None:
            return self._newest.get(event_type)
        return self._by_version.get((event_type, version))

    def versions_of(self, event_type: str) -> list[SchemaVersion]:
        """Every version of one type, oldest first."""
        return [each for each in self.versions if each.event_type == event_type]

    def upcast(
        self, event_type: str, version: int | None, payload: JsonValue
    ) -> Upcasted | UpcastFailed | None:
        """A stored payload at the newest active version; None when it is shown as it is."""
        newest = self._newest.get(event_type)
        return None if newest is None else self.upcasts.bring(payload, version, newest)

    def with_schema(self, event_type: str, schema: JsonObject) -> Registry:
        """The registry as it would be, were the schema the newest one of a type that is known."""
        newest = self._newest.get(event_type)
        if newest is None:
            return self
        version = self.versions_of(event_type)[-1].version + 1
        proposed = replace(newest, version=version, schema=schema, schema_hash=schema_hash(schema))
        return Registry(
            (*self.versions, proposed), mode=self.mode, revision=self.revision, upcasts=self.upcasts
        )

    def knows(self, event_type: str) -> bool:
        """Whether any version of the type is registered."""
        return event_type in self._newest or event_type in self._types

    def nearest(self, event_type: str) -> str | None:
        """The publishable type whose name is most like this one, if one is like it at all."""
        close = difflib.get_close_matches(event_type[:_NAME_MAX], self._newest, n=1)
        return close[0] if close else None

    def types(self) -> list[str]:
        """Every registered type, in order of name."""
        return list(self._types)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.versions, self.mode, self.revision)


def _rebuild(versions: tuple[SchemaVersion, ...], mode: Mode, revision: int) -> Registry:
    return Registry(versions, mode=mode, revision=revision)
