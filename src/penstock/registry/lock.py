"""Hold the declared schemas to what was promised: contracts/ is the lock file of our types.

    contracts/<vocabulary>/<type>.<version>.json      one frozen JSON Schema, never edited

A declaration that no longer gives its frozen schema has broken a promise: it needs a new version.
Older versions stay frozen beside it. tests/registry/test_contracts.py compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from penstock.envelope.envelope import JsonObject
from penstock.registry.declare import Vocabulary


def contracts(vocabularies: Iterable[Vocabulary]) -> dict[str, str]:
    """What each contract file should hold, by its path under contracts/."""
    return {
        f"{vocabulary.name}/{event.name}.{event.version}.json": _text(event.schema())
        for vocabulary in vocabularies
        for event in vocabulary.events
    }


def broken(frozen: Mapping[str, str], declared: Mapping[str, str]) -> tuple[str, ...]:
    """Paths whose frozen schema the code no longer gives; each wants a new version instead."""
    return tuple(
        path for path in sorted(declared) if frozen.get(path, declared[path]) != declared[path]
    )


def missing(frozen: Mapping[str, str], declared: Mapping[str, str]) -> tuple[str, ...]:
    """Paths that are declared but not frozen yet."""
    return tuple(path for path in sorted(declared) if path not in frozen)


def _text(schema: JsonObject) -> str:
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
