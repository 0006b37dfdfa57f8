"""Read what people write: the shared parts of every form, and their faults in our words.

    document ── pydantic ──▶ frozen model
                   └──▶ form_faults ──▶ Fault("/steps/2/timeoutMs", "expected at least 1000, …")

A fault names the place as it stands in the document; the values found there are never repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    GetPydanticSchema,
    StringConstraints,
    ValidationError,
)
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, PydanticCustomError, core_schema

from penstock.base.errors import Fault, NotInProfile
from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import PAYLOAD_BYTES_MAX, JsonObject, JsonValue
from penstock.registry.faults import pointer

FAULTS_MAX = 50


def _json(value: Any) -> Any:
    """Any JSON within the strict profile; what a float or a date would change is refused."""
    try:
        return decode(encode(value), bytes_max=PAYLOAD_BYTES_MAX)
    except NotInProfile as error:
        raise PydanticCustomError("json", "{detail}", {"detail": error.detail}) from None


def _json_object(value: Any) -> Any:
    if not isinstance(value, dict):
        raise PydanticCustomError("json", "expected an object, found something else")
    return _json(value)


def _checked_by(check: Callable[[Any], Any]) -> GetPydanticSchema:
    schema = core_schema.no_info_plain_validator_function(check)
    return GetPydanticSchema(lambda _source, _handler: schema)


AnyJson: TypeAlias = Annotated[Any, _checked_by(_json)]
AnyObject: TypeAlias = Annotated[dict[str, Any], _checked_by(_json_object)]
StepId: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]*$", max_length=100)
]
Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"\S", max_length=200)]
Slug: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=100)
]
Handler: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length=200)
]
SharedName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=100)
]


class Form(BaseModel):
    """A part of a document that people write: camelCase, nothing unknown, never changed."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", strict=True, alias_generator=to_camel, populate_by_name=True
    )


def model_wire(form: BaseModel) -> JsonObject:
    """A form under its wire names, defaults included; what was left out stays out."""
    return {
        field.alias or name: _plain(getattr(form, name))
        for name, field in type(form).model_fields.items()
        if getattr(form, name) is not None
    }


def _plain(value: Any) -> JsonValue:
    """A field's value as JSON; nulls within what people wrote freely are kept."""
    if isinstance(value, BaseModel):
        return model_wire(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    plain: JsonValue = value
    return plain


def form_faults(error: ValidationError) -> list[Fault]:
    """What pydantic found, at places that people wrote, in our words."""
    found = error.errors(include_url=False, include_input=False)
    return [Fault(pointer(_place(each["loc"])), _sentence(each)) for each in found[:FAULTS_MAX]]


def _place(location: Sequence[str | int]) -> list[str | int]:
    """Where the fault stands in the document; pydantic also names the kind it chose for a step."""
    place: list[str | int] = []
    for step in location:
        chosen = step in _KINDS and place and (place[-1] == "template" or place[:-1] == ["steps"])
        if not chosen and step not in _BRANCHES:
            place.append(step)
    return place


def _sentence(found: ErrorDetails) -> str:
    say = _SENTENCES.get(found["type"])
    context = found.get("ctx", {})
    if found["type"] == "value_error":  # a check of ours said it
        return str(context["error"])[:200]
    if say is None:
        return found["msg"][:200]
    return say.format(**context)


_KINDS = frozenset({"function", "subprocess", "spark", "service", "webhook", "airflow", "fanout"})
# Of a choice without a discriminator.
_BRANCHES = frozenset({"str", "int", "SecretRef", "list[any]"})
_SENTENCES = {
    "missing": "expected a required field, found nothing",
    "extra_forbidden": "expected no such field, found one",
    "string_type": "expected text, found something else",
    "int_type": "expected a whole number, found something else",
    "bool_type": "expected true or false, found something else",
    "dict_type": "expected an object, found something else",
    "model_type": "expected an object, found something else",
    "model_attributes_type": "expected an object, found something else",
    "list_type": "expected a list, found something else",
    "literal_error": "expected {expected}, found something else",
    "string_too_short": "expected at least {min_length} characters, found fewer",
    "string_too_long": "expected at most {max_length} characters, found more",
    "string_pattern_mismatch": "expected text that matches {pattern}, found other text",
    "too_long": "expected at most {max_length} entries, found {actual_length}",
    "too_short": "expected at least {min_length} entries, found {actual_length}",
    "greater_than_equal": "expected at least {ge}, found less",
    "less_than_equal": "expected at most {le}, found more",
    "datetime_type": "expected an instant as RFC 3339, found something else",
    "datetime_parsing": "expected an instant as RFC 3339, found other text",
    "datetime_from_date_parsing": "expected an instant as RFC 3339, found other text",
    "timezone_aware": "expected an instant with its offset from UTC, found one without",
    "union_tag_not_found": "expected a `type`, found none",
    "union_tag_invalid": "expected a `type` among {expected_tags}, found {tag!r}",
}
