"""List the filters a template may use, and make them speak JSON instead of Python.

Liquid's own filters print `True` and `{'a': 1}`, ask the machine for the time and let a short text
grow without end. Here a value becomes text in one way, `text_of`; `date` knows only the moment that
the trigger judges at; what multiplies asks first how much would come of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import wraps
from typing import Any, Final

from liquid import RenderContext
from liquid.builtin.filters import array, math, misc, string
from liquid.exceptions import FilterArgumentError, ResourceLimitError
from liquid.filter import with_context
from liquid.undefined import Undefined

from penstock.base.clock import parse_instant
from penstock.envelope.codec import encode
from penstock.triggers.budget import TEXT_CHARS_MAX

_EPOCH_SECONDS_MAX: Final = 253_402_300_799  # the last second of the year 9999
_UNIQUE_ITEMS_MAX: Final = 1_000  # compared each with each
_DIRECTIVE: Final = re.compile(r"%(.)", re.DOTALL)


def text_of(value: Any) -> str:
    """How a value is written into a text: as JSON, but nothing for null and texts as they are."""
    kind = type(value)
    if kind is str:
        return str(value)
    if value is None:
        return ""
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is float or kind is Decimal:
        return str(value)
    if kind is range:
        return f"{value.start}..{value.stop - 1}"
    if kind is dict or kind is list or kind is tuple:
        return encode(value).decode()
    return str(value)  # what is missing: nothing, or an error where that is asked for


def _spoken(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter of texts, given everything as text."""

    @wraps(function)
    def wrapper(value: Any, *args: Any, **said: Any) -> Any:
        return function(
            text_of(value), *(a if type(a) is int else text_of(a) for a in args), **said
        )

    return wrapper


def _replace(value: Any, old: Any, new: Any = "") -> str:
    text, old, new = text_of(value), text_of(old), text_of(new)
    times = text.count(old) if old else len(text) + 1
    if len(text) + times * len(new) > TEXT_CHARS_MAX:
        raise ResourceLimitError(f"expected at most {TEXT_CHARS_MAX} characters", token=None)
    return text.replace(old, new)


def _join(value: Any, separator: Any = " ") -> str:
    items = value if isinstance(value, list | tuple | range) else [value]
    texts, between = [text_of(item) for item in items], text_of(separator)
    if sum(map(len, texts)) + len(between) * len(texts) > TEXT_CHARS_MAX:
        raise ResourceLimitError(f"expected at most {TEXT_CHARS_MAX} characters", token=None)
    return between.join(texts)


def _map(value: Any, key: Any) -> list[Any]:
    if isinstance(value, Undefined):
        value.poke()
        return []
    items = value if isinstance(value, list | tuple) else [value]
    return [item.get(text_of(key)) if isinstance(item, dict) else None for item in items]


def _uniq(value: Any, *key: Any) -> Any:
    if isinstance(value, list) and len(value) > _UNIQUE_ITEMS_MAX:
        raise ResourceLimitError(f"expected at most {_UNIQUE_ITEMS_MAX} items in uniq", token=None)
    return array.uniq(value, *key)


def _json(value: Any) -> str:
    return "null" if isinstance(value, Undefined) else encode(value).decode()


@with_context
def _date(value: Any, form: Any = "%Y-%m-%dT%H:%M:%SZ", *, context: RenderContext) -> str:
    if value in ("now", "today"):
        value = context.resolve("now")
    at = _instant(value)
    if at is None:
        return text_of(value)  # as Liquid does: what is no time is left alone
    return _DIRECTIVE.sub(lambda found: _written(at, found[1]), text_of(form))


def _instant(value: Any) -> datetime | None:
    if type(value) is str and not value.isdecimal():
        try:
            return parse_instant(f"{value}T00:00:00Z" if len(value) == 10 else value)
        except ValueError:
            return None
    if type(value) not in (int, float, Decimal, str) or len(str(value)) > 40:
        return None
    seconds = float(value)
    if not 0 <= seconds <= _EPOCH_SECONDS_MAX:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _written(at: datetime, directive: str) -> str:
    if directive == "%":
        return "%"
    if directive == "s":
        return str(int(at.timestamp()))
    if directive == "L":
        return f"{at.microsecond // 1000:03d}"
    if directive not in "YmdHMSyjeBbAapIFTDRfGVuwUZz":
        raise FilterArgumentError(f"date does not know %{directive}", token=None)
    return at.strftime(f"%{directive}")


def _truncate(value: Any, most: Any = 50, end: Any = "...") -> Any:
    return string.truncate(text_of(value), most, text_of(end))


_TEXTS: Final[tuple[str, ...]] = (
    "append", "base64_decode", "base64_encode", "base64_url_safe_decode", "base64_url_safe_encode",
    "capitalize", "downcase", "lstrip", "prepend", "remove", "remove_first", "remove_last",
    "replace_first", "replace_last", "rstrip", "split", "squish", "strip", "truncatewords",
    "upcase", "url_decode",
)  # fmt: skip
_PLAIN: Final[Mapping[str, Callable[..., Any]]] = {
    "abs": math.abs_,
    "at_least": math.at_least,
    "at_most": math.at_most,
    "ceil": math.ceil,
    "compact": array.compact,
    "concat": array.concat,
    "default": misc.default,
    "divided_by": math.divided_by,
    "escape": string.escape,
    "find": array.find,
    "find_index": array.find_index,
    "first": array.first,
    "floor": math.floor,
    "has": array.has,
    "last": array.last,
    "minus": math.minus,
    "modulo": math.modulo,
    "plus": math.plus,
    "reject": array.reject,
    "reverse": array.reverse,
    "round": math.round_,
    "size": misc.size,
    "slice": string.slice_,
    "sort": array.sort,
    "sort_natural": array.sort_natural,
    "strip_newlines": string.strip_newlines,
    "sum": array.sum_,
    "times": math.times,
    "url_encode": string.url_encode,
    "where": array.where,
}
_OURS: Final[Mapping[str, Callable[..., Any]]] = {
    "date": _date,
    "join": _join,
    "json": _json,
    "map": _map,
    "replace": _replace,
    "truncate": _truncate,
    "uniq": _uniq,
}
FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: _spoken(getattr(string, name)) for name in _TEXTS},
    **_PLAIN,
    **_OURS,
}
