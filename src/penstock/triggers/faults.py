"""Turn what pydantic finds wrong with a trigger into places and sentences.

Pydantic names the branch of a union in every location, and its sentences follow no formula of
ours. Here a location becomes a JSON Pointer into what was sent, and a sentence says what was
expected and what was found.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from penstock.base.errors import Fault
from penstock.base.pointers import pointer as pointer_of
from penstock.envelope.fields import kind
from penstock.triggers.clause import AllOf, AnyOf, Leaf, Not

_GROUPS: Final = frozenset({"predicates", "all", "any"})
_BRANCHES: Final[Mapping[str, type[BaseModel]]] = {
    "leaf": Leaf,
    "all": AllOf,
    "any": AnyOf,
    "not": Not,
}


def faults_of(error: ValidationError, model: type[BaseModel]) -> list[Fault]:
    """Everything that is wrong, each with its place."""
    found: list[Fault] = []
    for each in error.errors(include_url=False):
        # A group whose only clause is wrong is not empty, though pydantic calls it so.
        if each["type"] == "too_short" and each["input"]:
            continue
        pointer, branch = _pointer(each["loc"])
        context = each.get("ctx", {})
        if each["type"] == "between":
            pointer = f"/{context['field']}"
        elif each["type"] == "clause" and context["field"]:
            pointer += f"/{context['field']}"
        if each["type"] == "extra_forbidden":
            detail = _unknown(str(each["loc"][-1]), branch or model)
        else:
            detail = _sentence(each["type"], each["msg"], context, each["input"])
        found.append(Fault(pointer, detail))
    return found


def _pointer(location: Sequence[str | int]) -> tuple[str, type[BaseModel] | None]:
    """The place without the branches of unions, and the shape of the last clause it is in."""
    parts: list[str | int] = []
    is_branch, branch = False, None
    for item in location:
        if is_branch:
            is_branch, branch = False, _BRANCHES.get(str(item))
            continue
        parts.append(item)
        if parts[0] == "predicates":
            is_item = isinstance(item, int) and parts[-2] in _GROUPS
            is_branch = is_item or (item == "not" and branch is Not)
    return pointer_of(parts), branch


def _unknown(name: str, model: type[BaseModel]) -> str:
    known = [field.alias or name for name, field in model.model_fields.items()]
    near = difflib.get_close_matches(name[:80], known, 1)
    hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
    return f"expected a field that exists, found {name[:80]!r}{hint}"


def _shown(value: object) -> str:
    if isinstance(value, str):
        return repr(value[:80])
    return str(value) if type(value) in (int, float) else kind(value)  # type: ignore[arg-type]


_SENTENCES: Final[Mapping[str, Callable[[Mapping[str, Any], Any], str]]] = {
    "missing": lambda _c, _v: "expected a value, found nothing",
    "string_type": lambda _c, v: f"expected a string, found {_shown(v)}",
    "int_type": lambda _c, v: f"expected an integer, found {_shown(v)}",
    "bool_type": lambda _c, v: f"expected true or false, found {_shown(v)}",
    "dict_type": lambda _c, v: f"expected an object, found {_shown(v)}",
    "tuple_type": lambda _c, v: f"expected an array, found {_shown(v)}",
    "model_type": lambda _c, v: f"expected an object, found {_shown(v)}",
    "model_attributes_type": lambda _c, v: f"expected an object, found {_shown(v)}",
    "string_too_long": lambda c, v: (
        f"expected at most {c['max_length']} characters, found {len(v)}"
    ),
    "string_too_short": lambda c, v: (
        f"expected at least {c['min_length']} characters, found {len(v)}"
    ),
    "too_long": lambda c, v: f"expected at most {c['max_length']} items, found {len(v)}",
    "too_short": lambda c, v: f"expected at least {c['min_length']} items, found {len(v)}",
    "greater_than_equal": lambda c, v: f"expected at least {c['ge']}, found {v}",
    "less_than_equal": lambda c, v: f"expected at most {c['le']}, found {v}",
    "enum": lambda c, v: f"expected {c['expected']}, found {_shown(v)}",
    "literal_error": lambda c, v: f"expected {c['expected']}, found {_shown(v)}",
}


def _sentence(word: str, message: str, context: Mapping[str, Any], value: Any) -> str:
    say = _SENTENCES.get(word)
    return message if say is None else say(context, value)
