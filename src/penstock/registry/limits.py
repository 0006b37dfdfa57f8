"""Compare what two shapes of one kind say about length, size, form and listed values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from decimal import Decimal
from itertools import islice

from penstock.envelope.codec import canonical
from penstock.registry.difference import Difference, changed, narrowed, widened
from penstock.registry.shape import Number, Shape

_LEAST = {
    "string": (("minLength", "length"),),
    "array": (("minItems", "number of items"),),
    "object": (("minProperties", "number of fields"),),
}
_MOST = {
    "string": (("maxLength", "length"),),
    "array": (("maxItems", "number of items"),),
    "object": (("maxProperties", "number of fields"),),
}
_VALUES_SHOWN = 8
TO_WHOLE, FROM_WHOLE = "was number, is now integer", "was integer, is now number"
_Bound = tuple[Number, bool]  # a limit, and whether it is itself shut out


def compare_limits(old: Shape, new: Shape, pointer: str) -> Iterator[Difference]:
    """Everything that differs between the two but their members."""
    before, after = old.listed(), new.listed()
    if before is not None or after is not None:
        yield from _compare_listed(old, new, pointer)
        if old.kind in ("string", "number"):
            return  # each listed value was tried on the other's rules
    for word, name in _LEAST.get(old.kind, ()):
        low, high = max(old.numbers(word), default=None), max(new.numbers(word), default=None)
        yield from _moved(low, high, pointer, f"least {name}", lambda a, b: b > a)
    for word, name in _MOST.get(old.kind, ()):
        low, high = min(old.numbers(word), default=None), min(new.numbers(word), default=None)
        yield from _moved(low, high, pointer, f"greatest {name}", lambda a, b: b < a)
    if old.kind == "number":
        yield from _compare_numbers(old, new, pointer)
    if old.kind == "string":
        for word in ("pattern", "format"):
            yield from _compare_words(old, new, pointer, word)
    if old.kind == "array":
        yield from _compare_unique(old, new, pointer)
    yield from _compare_opaque(old, new, pointer)


def _compare_listed(old: Shape, new: Shape, pointer: str) -> Iterator[Difference]:
    before, after = old.listed(), new.listed()
    if before is None:
        yield narrowed(pointer, f"allows only {_texts(after or ())} now")
    elif gone := before.keys() - new.accepted(before).keys():
        yield narrowed(pointer, f"no longer allows {_texts([t for t in before if t in gone])}")
    if after is None:
        yield widened(pointer, f"is no longer limited to {_texts(before or ())}")
    elif fresh := after.keys() - old.accepted(after).keys():
        yield widened(pointer, f"also allows {_texts([t for t in after if t in fresh])} now")


def _compare_numbers(old: Shape, new: Shape, pointer: str) -> Iterator[Difference]:
    if new.is_whole and not old.is_whole:
        yield narrowed(pointer, TO_WHOLE)
    if old.is_whole and not new.is_whole:
        yield widened(pointer, FROM_WHOLE)
    least = _edge(old, "minimum", max), _edge(new, "minimum", max)
    yield from _moved(*least, pointer, "minimum", lambda a, b: b > a)
    most = _edge(old, "maximum", min), _edge(new, "maximum", min)
    # Of two equal limits, the one that is itself shut out is the stricter one.
    yield from _moved(*most, pointer, "maximum", lambda a, b: (b[0], not b[1]) < (a[0], not a[1]))
    yield from _compare_steps(old, new, pointer)


def _edge(shape: Shape, word: str, strictest: Callable[..., Number]) -> _Bound | None:
    shut_out = shape.numbers("exclusive" + word.capitalize())
    found = [(limit, False) for limit in shape.numbers(word)]
    found += [(limit, True) for limit in shut_out]
    if not found:
        return None
    limit = strictest(edge[0] for edge in found)
    return limit, any(edge == (limit, True) for edge in found)


def _compare_steps(old: Shape, new: Shape, pointer: str) -> Iterator[Difference]:
    before, after = old.numbers("multipleOf"), new.numbers("multipleOf")
    if before == after:
        return
    if not after:
        yield widened(pointer, f"need no longer be a multiple of {before[0]}")
    elif not before:
        yield narrowed(pointer, f"must be a multiple of {after[0]} now")
    elif _is_multiple(before, after):
        yield widened(pointer, f"must be a multiple of {after[0]}, was of {before[0]}")
    elif _is_multiple(after, before):
        yield narrowed(pointer, f"must be a multiple of {after[0]} now, was of {before[0]}")
    else:
        yield changed(pointer, f"must be a multiple of {after[0]} now, was of {before[0]}")


def _is_multiple(ones: list[Number], others: list[Number]) -> bool:
    """Whether every multiple of the one step is a multiple of the other."""
    return len(ones) == len(others) == 1 and Decimal(str(ones[0])) % Decimal(str(others[0])) == 0


def _compare_words(old: Shape, new: Shape, pointer: str, word: str) -> Iterator[Difference]:
    before, after = (dict.fromkeys(map(str, shape.values(word))) for shape in (old, new))
    fresh = [text for text in after if text not in before]
    gone = [text for text in before if text not in after]
    if fresh and gone:
        yield changed(pointer, f"has the {word} {_all(fresh)} now, was {_all(gone)}")
    elif fresh:
        yield narrowed(pointer, f"must have the {word} {_all(fresh)} now")
    elif gone:
        yield widened(pointer, f"need no longer have the {word} {_all(gone)}")


def _compare_unique(old: Shape, new: Shape, pointer: str) -> Iterator[Difference]:
    before, after = (True in shape.values("uniqueItems") for shape in (old, new))
    if after and not before:
        yield narrowed(pointer, "must not hold an item twice now")
    if before and not after:
        yield widened(pointer, "may hold an item twice now")


def _compare_opaque(old: Shape, new: Shape, pointer: str) -> Iterator[Difference]:
    before, after = old.opaque(), new.opaque()
    for word in [*before, *(word for word in after if word not in before)]:
        if word not in before:
            yield narrowed(pointer, f"has the rule {word} now")
        elif word not in after:
            yield widened(pointer, f"no longer has the rule {word}")
        elif canonical(before[word]) != canonical(after[word]):
            yield changed(pointer, f"has another rule {word} now")


def _moved(
    before: Number | _Bound | None, after: Number | _Bound | None, pointer: str, name: str,
    is_stricter: Callable[..., bool],
) -> Iterator[Difference]:  # fmt: skip
    if before == after:
        return
    if before is None:
        yield narrowed(pointer, f"has a {name} of {_bound(after)} now")
    elif after is None:
        yield widened(pointer, f"no longer has a {name} of {_bound(before)}")
    else:
        say = narrowed if is_stricter(before, after) else widened
        yield say(pointer, f"has a {name} of {_bound(after)} now, was {_bound(before)}")


def _bound(limit: Number | _Bound | None) -> str:
    if isinstance(limit, tuple):
        return f"{limit[0]}, itself shut out" if limit[1] else str(limit[0])
    return str(limit)


def _texts(values: Collection[str]) -> str:
    more = ", …" if len(values) > _VALUES_SHOWN else ""
    return (", ".join(islice(values, _VALUES_SHOWN)) + more) or "nothing"


def _all(words: list[str]) -> str:
    return " and ".join(words)
