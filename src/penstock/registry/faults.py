"""Say in one sentence each what is wrong with a payload, and where.

    {"version": "12"}  ──▶  Fault("/version", "expected integer, found string")

The sentences never repeat a value of the payload. So the same mistake reads the same in every
event, dead letters group by cause, and nothing private reaches a log line.

A choice (`anyOf`, `oneOf`) is explained by the branch that fits the type, came furthest and has the
least to complain about: for "an object or null" that is what is wrong inside the object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from itertools import islice

from jsonschema_rs import ValidationError, ValidationErrorKind

from penstock.base.errors import Fault
from penstock.base.pointers import pointer
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonValue

_WORDS_MAX = 160


def faults(errors: Iterable[ValidationError], limit: int) -> tuple[Fault, ...]:
    """The first `limit` faults; two errors that read the same count once."""
    found = (fault for error in errors for fault in _explain(error))
    return tuple(islice(dict.fromkeys(found), limit))


def _explain(error: ValidationError) -> Iterator[Fault]:
    kind = error.kind
    place = error.instance_path
    if isinstance(kind, ValidationErrorKind.Required):
        yield Fault(pointer([*place, kind.property]), "expected a required field, found nothing")
    elif isinstance(
        kind, ValidationErrorKind.AdditionalProperties | ValidationErrorKind.UnevaluatedProperties
    ):
        for name in kind.unexpected:
            yield Fault(pointer([*place, name]), "expected no such field, found one")
    elif isinstance(kind, ValidationErrorKind.AnyOf | ValidationErrorKind.OneOfNotValid):
        yield from _explain_choice(error, kind.context)
    else:
        say = _SENTENCES.get(kind.name, _anything)
        yield Fault(pointer(place), _short(say(error)))


def _explain_choice(
    error: ValidationError, branches: list[list[ValidationError]]
) -> Iterator[Fault]:
    """What the furthest branch of the right type complains about, or which types would do."""
    place = error.instance_path
    types = [_types_wanted(branch, place) for branch in branches]
    right = [branch for branch, wanted in zip(branches, types, strict=True) if not wanted]
    if right:
        for inner in max(right, key=lambda branch: (_reach(branch), -len(branch))):
            yield from _explain(inner)
        return
    words = dict.fromkeys(word for wanted in types for word in wanted)
    sentence = f"expected {' or '.join(words)}, found {_name(error.instance)}"
    yield Fault(pointer(place), _short(sentence))


def _types_wanted(branch: list[ValidationError], place: list[str | int]) -> list[str]:
    """The types a branch wanted at `place` and did not find; none if the type was right."""
    return [
        word
        for error in branch
        if isinstance(error.kind, ValidationErrorKind.Type) and error.instance_path == place
        for word in error.kind.types
    ]


def _reach(branch: list[ValidationError]) -> int:
    """How deep into the payload a branch came; one that misses a field at once came that far."""
    return max(
        (
            len(error.instance_path) + isinstance(error.kind, ValidationErrorKind.Required)
            for error in branch
        ),
        default=0,
    )


def _wrong_type(error: ValidationError) -> str:
    return f"expected {' or '.join(error.kind.value)}, found {_name(error.instance)}"


def _not_listed(error: ValidationError) -> str:
    options = error.kind.value
    listed = options if isinstance(options, list) else [options]
    words = ", ".join(encode(option).decode() for option in listed[:8])
    more = ", …" if len(listed) > 8 else ""
    return f"expected one of {words}{more}, found another value"


def _not_constant(error: ValidationError) -> str:
    return f"expected {encode(error.kind.value).decode()}, found another value"


def _anything(error: ValidationError) -> str:
    return f'expected a value that meets "{error.kind.name}", found one that does not'


def _limit(template: str) -> Callable[[ValidationError], str]:
    """A sentence with the schema's own limit in it."""

    def say(error: ValidationError) -> str:
        return template.format(error.kind.value)

    return say


_SENTENCES: dict[str, Callable[[ValidationError], str]] = {
    "type": _wrong_type,
    "enum": _not_listed,
    "const": _not_constant,
    "format": _limit('expected text of format "{}", found other text'),
    "pattern": _limit("expected text that matches {}, found other text"),
    "minLength": _limit("expected a length of at least {}, found less"),
    "maxLength": _limit("expected a length of at most {}, found more"),
    "minimum": _limit("expected at least {}, found less"),
    "maximum": _limit("expected at most {}, found more"),
    "exclusiveMinimum": _limit("expected more than {}, found less or the same"),
    "exclusiveMaximum": _limit("expected less than {}, found more or the same"),
    "multipleOf": _limit("expected a multiple of {}, found another number"),
    "minItems": _limit("expected a length of at least {}, found less"),
    "maxItems": _limit("expected a length of at most {}, found more"),
    "minProperties": _limit("expected a number of fields of at least {}, found less"),
    "maxProperties": _limit("expected a number of fields of at most {}, found more"),
    "uniqueItems": _limit("expected every item once, found one twice"),
    "contains": _limit("expected an item that the schema asks for, found none"),
    "falseSchema": _limit("expected nothing here, found a value"),
    "oneOf": _limit("expected exactly one of the allowed shapes, found several"),
}


def _name(value: JsonValue) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float | Decimal):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= _WORDS_MAX else sentence[: _WORDS_MAX - 1] + "…"
