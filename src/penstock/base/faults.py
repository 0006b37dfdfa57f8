"""Say in our own words what pydantic found wrong, and where it stands in the document.

    ValidationError ── form_faults ──▶ Fault("/steps/2/timeoutMs", "expected at least 1000, …")
                    └─ expected ─────▶ the first half, for who may show the value that was found

One table for settings, payload models and every form, so the same mistake reads the same
everywhere. A fault names the place as somebody wrote it, without the branches of a choice that
pydantic tried, and never repeats the value: it may be a secret, or somebody's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from penstock.base.errors import Fault
from penstock.base.pointers import pointer

FAULTS_MAX: Final = 50
_NOWHERE: Final = object()
_Way: TypeAlias = tuple[object, tuple[str | int, ...]]


def form_faults(error: ValidationError, document: object) -> list[Fault]:
    """What pydantic found in `document`, at places that people wrote, in our words."""
    found = error.errors(include_url=False)[:FAULTS_MAX]
    return [Fault(pointer(_place(each, document)), _sentence(each)) for each in found]


def expected(found: ErrorDetails) -> str:
    """The first half of the sentence; the caller says what was found."""
    words = _WORDS.get(_kind(found))
    return found["msg"][:200] if words is None else f"expected {_filled(words[0], found)}"


def _place(found: ErrorDetails, document: object) -> Sequence[str | int]:
    """The longest way through the document that ends at what pydantic looked at.

    Along it, a step that only names the branch of a choice leads nowhere and is passed over. There
    is no such way if a validator put something else in its stead; then pydantic's own stands.
    """
    location = found["loc"]
    absent = location[-1:] if found["type"] == "missing" else ()
    ways: dict[int, _Way] = {id(document): (document, ())}
    for step in location[: len(location) - len(absent)]:
        for here, place in list(ways.values()):
            inner = _inside(here, step)
            known = ways.get(id(inner), (None, ()))[1]
            if inner is not _NOWHERE and len(place) + 1 >= len(known):
                ways[id(inner)] = (inner, (*place, step))
    ends = [place for here, place in ways.values() if here is found["input"]]
    return (*ends[0], *absent) if ends else location


def _inside(here: object, step: str | int) -> object:
    if isinstance(here, Mapping):
        return here.get(step, _NOWHERE)
    if isinstance(here, list | tuple) and isinstance(step, int) and step < len(here):
        return here[step]
    return _NOWHERE


def _sentence(found: ErrorDetails) -> str:
    if found["type"] in ("value_error", "assertion_error"):  # a check in the model said it
        return str(found["ctx"]["error"])[:200]
    words = _WORDS.get(_kind(found))
    said = "" if words is None else f", found {_filled(words[1], found)}"
    return expected(found) + said


def _kind(found: ErrorDetails) -> str:
    """The kind of fault; pydantic measures a secret as if it were a list."""
    is_text = found.get("ctx", {}).get("field_type") == "Value"
    return f"string_{found['type']}" if is_text else found["type"]


def _filled(words: str, found: ErrorDetails) -> str:
    return words.format(**found.get("ctx", {}))


# What would have fitted, and what was found instead of it.
_ELSE: Final = "something else"
_TEXT: Final = "other text"
_INSTANT: Final = "an instant as RFC 3339"
_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "missing": ("a required field", "nothing"),
    "extra_forbidden": ("no such field", "one"),
    "none_required": ("null", _ELSE),
    "string_type": ("text", _ELSE),
    "string_unicode": ("text", _ELSE),
    "int_type": ("a whole number", _ELSE),
    "int_parsing": ("a whole number", _TEXT),
    "int_parsing_size": ("a whole number of at most 4300 digits", "more"),
    "int_from_float": ("a whole number", "one with a fraction"),
    "float_type": ("a number", _ELSE),
    "float_parsing": ("a number", _TEXT),
    "decimal_type": ("a number", _ELSE),
    "decimal_parsing": ("a number", _TEXT),
    "finite_number": ("a finite number", "another"),
    "bool_type": ("true or false", _ELSE),
    "bool_parsing": ("1 or 0, true or false", _TEXT),
    "dict_type": ("an object", _ELSE),
    "model_type": ("an object", _ELSE),
    "model_attributes_type": ("an object", _ELSE),
    "dataclass_type": ("an object", _ELSE),
    "list_type": ("a list", _ELSE),
    "tuple_type": ("a list", _ELSE),
    "set_type": ("a list", _ELSE),
    "frozen_set_type": ("a list", _ELSE),
    "literal_error": ("{expected}", _ELSE),
    "enum": ("{expected}", _ELSE),
    "string_too_short": ("at least {min_length} characters", "fewer"),
    "string_too_long": ("at most {max_length} characters", "more"),
    "string_pattern_mismatch": ("text that matches {pattern}", _TEXT),
    "too_long": ("at most {max_length} entries", "{actual_length}"),
    "too_short": ("at least {min_length} entries", "{actual_length}"),
    "greater_than_equal": ("at least {ge}", "less"),
    "less_than_equal": ("at most {le}", "more"),
    "greater_than": ("more than {gt}", "less or the same"),
    "less_than": ("less than {lt}", "more or the same"),
    "multiple_of": ("a multiple of {multiple_of}", "another number"),
    "decimal_max_digits": ("at most {max_digits} digits", "more"),
    "decimal_max_places": ("at most {decimal_places} digits after the point", "more"),
    "decimal_whole_digits": ("at most {whole_digits} digits before the point", "more"),
    "datetime_type": (_INSTANT, _ELSE),
    "datetime_parsing": (_INSTANT, _TEXT),
    "datetime_from_date_parsing": (_INSTANT, _TEXT),
    "timezone_aware": ("an instant with its offset from UTC", "one without"),
    "timezone_naive": ("an instant without an offset from UTC", "one with it"),
    "date_type": ("a date as YYYY-MM-DD", _ELSE),
    "date_parsing": ("a date as YYYY-MM-DD", _TEXT),
    "date_from_datetime_parsing": ("a date as YYYY-MM-DD", _TEXT),
    "date_from_datetime_inexact": ("a date as YYYY-MM-DD", "an instant"),
    "time_type": ("a time of day as HH:MM:SS", _ELSE),
    "time_parsing": ("a time of day as HH:MM:SS", _TEXT),
    "time_delta_type": ("a duration as ISO 8601", _ELSE),
    "time_delta_parsing": ("a duration as ISO 8601", _TEXT),
    "uuid_type": ("a UUID", _ELSE),
    "uuid_parsing": ("a UUID", _TEXT),
    "uuid_version": ("a UUID of version {expected_version}", "one of another"),
    "url_type": ("a URL", _ELSE),
    "url_parsing": ("a URL", _TEXT),
    "url_scheme": ("a URL of scheme {expected_schemes}", "one of another"),
    "url_too_long": ("a URL of at most {max_length} characters", "more"),
    "union_tag_not_found": ("a `type`", "none"),
    "union_tag_invalid": ("a `type` among {expected_tags}", "{tag!r}"),
}
