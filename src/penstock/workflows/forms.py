"""Read what people write: the shared parts of every form.

    document ── pydantic ──▶ Form, a frozen model ── model_wire ──▶ the document, defaults included
                   └──▶ base.faults.form_faults says what is wrong

What a form holds freely is JSON of the strict profile, kept as it was written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import BaseModel, ConfigDict, GetPydanticSchema, StringConstraints
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError, core_schema

from penstock.base.errors import NotInProfile
from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import PAYLOAD_BYTES_MAX, JsonObject, JsonValue


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
