"""Read what a caller says of a decision: `{"items": [{"types": […], "tags": {…}}]}`, and the rest.

Everything that does not fit is a ConditionInvalid with a JSON Pointer. A type that is not
registered is refused too: it matches nothing, so a misspelt condition would let everything pass.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

from penstock.base.errors import ConditionInvalid
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.envelope.fields import RULES, kind
from penstock.envelope.names import is_glob, type_fault
from penstock.registry.registry import Registry
from penstock.store.append.condition import Condition, Criteria, Criterion, glob_refused

ITEMS_MAX = 50
TYPES_MAX = 50
_POSITION = re.compile(r"[0-9]{1,18}", re.ASCII)


def read_condition(tree: JsonValue, pointer: str = "/condition") -> Condition | None:
    """The condition of an append; None when there is none."""
    if tree is None:
        return None
    said = _object(tree, pointer, ("query", "after", "failIfExists"))
    if "query" not in said and "failIfExists" not in said:
        raise ConditionInvalid(
            "expected a query or failIfExists, found neither",
            pointer=pointer,
            remedy="Leave `condition` out to append anyway; else say what must not exist.",
        )
    if "after" in said and "query" not in said:
        raise ConditionInvalid("expected a query beside after", pointer=f"{pointer}/query")
    return Condition(
        criteria=_optional(said, "query", pointer),
        after=read_position(said.get("after"), f"{pointer}/after"),
        fail_if_exists=_optional(said, "failIfExists", pointer),
    )


def read_criteria(tree: JsonValue, pointer: str = "/query") -> Criteria:
    """The criteria of a query: at least one, each with a type or a tag."""
    said = _object(tree, pointer, ("items",))
    items = said.get("items")
    if not isinstance(items, list) or not items:
        raise ConditionInvalid(
            "expected an array of at least one item",
            pointer=f"{pointer}/items",
            remedy='Say what is meant: {"items": [{"types": ["…"], "tags": {"key": "value"}}]}.',
        )
    if len(items) > ITEMS_MAX:
        raise ConditionInvalid(
            f"expected at most {ITEMS_MAX} items, found {len(items)}", pointer=f"{pointer}/items"
        )
    return tuple(_criterion(item, f"{pointer}/items/{n}") for n, item in enumerate(items))


def read_position(tree: JsonValue, pointer: str) -> int | None:
    """A position, in decimal digits or as a number; None when there is none."""
    if tree is None:
        return None
    text = str(tree) if type(tree) is int else tree
    if not isinstance(text, str) or _POSITION.fullmatch(text) is None:
        raise ConditionInvalid(
            f"expected a position in decimal digits, found {_shown(tree)}", pointer=pointer
        )
    return int(text)


def check_types(criteria: Criteria, registry: Registry, pointer: str) -> None:
    """ConditionInvalid for a type that nothing can ever have."""
    if registry.mode == "open":
        return
    for n, criterion in enumerate(criteria):
        for m, name in enumerate(criterion.types):
            if not registry.knows(name):
                near = registry.nearest(name)
                hint = f"; the nearest known type is {near}" if near else ""
                raise ConditionInvalid(
                    f"expected a registered type, found {name!r}{hint}",
                    pointer=f"{pointer}/items/{n}/types/{m}",
                    remedy="Correct its name: no event has this type, so nothing would be checked.",
                )


def _optional(said: JsonObject, name: str, pointer: str) -> Criteria:
    return read_criteria(said[name], f"{pointer}/{name}") if name in said else ()


def _criterion(tree: JsonValue, pointer: str) -> Criterion:
    said = _object(tree, pointer, ("types", "tags"))
    types, tags = said.get("types", []), said.get("tags", {})
    if not isinstance(types, list) or len(types) > TYPES_MAX:
        raise ConditionInvalid(
            f"expected an array of at most {TYPES_MAX} types", pointer=f"{pointer}/types"
        )
    names = [_type(name, f"{pointer}/types/{n}") for n, name in enumerate(types)]
    faults = RULES["tags"](tags)
    if faults or not isinstance(tags, dict):
        detail = faults[0].detail if faults else "expected an object of strings"
        where = faults[0].pointer if faults else "/tags"
        raise ConditionInvalid(detail, pointer=f"{pointer}{where}")
    if not names and not tags:
        raise ConditionInvalid(
            "expected a type or a tag, found neither",
            pointer=pointer,
            remedy="Name the types, the tags or both that the decision depends on.",
        )
    pairs = tuple(sorted((key, str(value)) for key, value in tags.items()))
    return Criterion(tuple(dict.fromkeys(names)), pairs)


def _type(tree: JsonValue, pointer: str) -> str:
    if not isinstance(tree, str):
        raise ConditionInvalid(f"expected a string, found {kind(tree)}", pointer=pointer)
    if is_glob(tree):
        raise glob_refused(tree, pointer)
    fault = type_fault(tree)
    if fault is not None:
        raise ConditionInvalid(fault, pointer=pointer)
    return tree


def _object(tree: JsonValue, pointer: str, known: Collection[str]) -> JsonObject:
    if not isinstance(tree, dict):
        raise ConditionInvalid(f"expected an object, found {kind(tree)}", pointer=pointer)
    for name in tree:
        if name not in known:
            near = difflib.get_close_matches(name[:80], known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConditionInvalid(
                f"expected {' or '.join(known)}, found {name[:80]!r}{hint}",
                pointer=f"{pointer}/{name[:80]}",
            )
    return tree


def _shown(tree: JsonValue) -> str:
    return repr(tree[:40]) if isinstance(tree, str) else kind(tree)
