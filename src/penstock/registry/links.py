"""Collect what an event is about from the keys of its payload and metadata.

    {"dataset": {"id": "ds-1", "slug": "weather"}, "namespace": "flags", "key": "search"}
        ──▶ datasetIds ["ds-1"], datasetSlugs ["weather"], metastoreRecords [{"flags", "search"}]

Keys are compared by their letters and digits alone, in lower case. Every link is kept once, in the
order of the document. The walk keeps its own stack, so the depth of a document costs no call depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from penstock.envelope.envelope import JsonObject, JsonValue

KINDS = (
    "workflowDefinitionIds",
    "workflowIds",
    "workflowRunIds",
    "repositoryIds",
    "datasetIds",
    "datasetSlugs",
    "assetIds",
    "timestoreDatasetIds",
    "metastoreRecords",
    "filestoreNodes",
)

_BY_KEY: dict[str, tuple[str, ...]] = {
    "workflowdefinitionid": ("workflowDefinitionIds",),
    "workflowrunid": ("workflowRunIds",),
    "workflowid": ("workflowIds",),
    "repositoryid": ("repositoryIds",),
    "repoid": ("repositoryIds",),
    "datasetid": ("datasetIds",),
    "datasetsid": ("datasetIds",),
    "datasetslug": ("datasetSlugs",),
    "assetid": ("assetIds",),
    "timestoredatasetid": ("timestoreDatasetIds",),
    "timestoredatasetslug": ("timestoreDatasetIds", "datasetSlugs"),
}
_BY_ENDING = (
    ("workflowdefinition", "workflowDefinitionIds"),
    ("workflowrun", "workflowRunIds"),
    ("workflow", "workflowIds"),
    ("repository", "repositoryIds"),
    ("dataset", "datasetIds"),
    ("asset", "assetIds"),
)
_BY_PARENT = (
    ("workflowdefinition", "workflowDefinitionIds"),
    ("workflowrun", "workflowRunIds"),
    ("repository", "repositoryIds"),
    ("dataset", "datasetIds"),
    ("asset", "assetIds"),
    ("timestore", "timestoreDatasetIds"),
)
_SIGNS = re.compile(r"[^a-z0-9]+")
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)


class _Place(NamedTuple):
    """Where a value stands: its key, the key above, and what the whole way mentions."""

    key: str
    parent: str
    in_dataset: bool
    in_timestore: bool


class Links:
    """Links being collected, each kept once."""

    def __init__(self) -> None:
        self._found: dict[str, dict[object, JsonValue]] = {kind: {} for kind in KINDS}

    def add(self, kind: str, value: JsonValue) -> None:
        """Take what a pointer or a key rule found; what is no link of that kind is passed over."""
        if isinstance(value, list):
            for item in value:
                self.add(kind, item)
        elif isinstance(value, dict):
            link = _record(value) if kind == "metastoreRecords" else None
            link = _node(value) if kind == "filestoreNodes" else link
            if link is not None:
                self._found[kind].setdefault(tuple(link.values()), link)
        elif isinstance(value, str) and kind in KINDS[:-2] and (text := value.strip()):
            self._found[kind].setdefault(text, text)

    def walk(self, tree: JsonValue) -> None:
        """Apply the key rules to every key of a document."""
        waiting = [(_Place("", "", False, False), tree)]
        while waiting:
            place, value = waiting.pop()
            if isinstance(value, str):
                for kind in _kinds(place):
                    self.add(kind, value)
            elif isinstance(value, list):
                waiting.extend((place, item) for item in reversed(value))
            elif isinstance(value, dict):
                self.add("metastoreRecords", value)
                self.add("filestoreNodes", value)
                waiting.extend(_members(place, value))

    def found(self) -> JsonObject:
        """The kinds that have links, in a fixed order."""
        return {kind: list(links.values()) for kind, links in self._found.items() if links}


def _members(place: _Place, value: JsonObject) -> Iterator[tuple[_Place, JsonValue]]:
    """The members last to first, because the stack turns them round."""
    in_dataset = place.in_dataset or "dataset" in place.key
    in_timestore = place.in_timestore or "timestore" in place.key
    for key in reversed(value):
        yield _Place(_plain(key), place.key, in_dataset, in_timestore), value[key]


def _kinds(place: _Place) -> Iterable[str]:
    key = place.key
    if key in _BY_KEY:
        return _BY_KEY[key]
    if key == "slug":
        return _slug_kinds(place)
    if key == "id":
        return _first(_BY_PARENT, place.parent) if place.parent != "workflow" else ("workflowIds",)
    return tuple(kind for ending, kind in _BY_ENDING if key.endswith(ending))[:1]


def _slug_kinds(place: _Place) -> Iterator[str]:
    if place.in_dataset:
        yield "datasetSlugs"
    if place.in_timestore:
        yield "timestoreDatasetIds"


def _first(rules: tuple[tuple[str, str], ...], parent: str) -> tuple[str, ...]:
    return tuple(kind for word, kind in rules if word in parent)[:1]


@lru_cache(maxsize=8192)
def _plain(key: str) -> str:
    return _SIGNS.sub("", key.lower())


def _record(value: JsonObject) -> JsonObject | None:
    """A metastore record: anything that has a namespace and a key."""
    namespace, key = value.get("namespace"), value.get("key")
    if isinstance(namespace, str) and isinstance(key, str) and namespace and key:
        return {"namespace": namespace, "key": key}
    return None


def _node(value: JsonObject) -> JsonObject | None:
    """A filestore node: anything that says on which mount it is."""
    mount = _number(value.get("backendMountId"))
    if mount is None:
        return None
    path = value.get("path")
    return {
        "backendMountId": mount,
        "nodeId": _number(value.get("nodeId")),
        "path": path if isinstance(path, str) else None,
    }


def _number(value: JsonValue) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value)
    return None
