"""Bound what a template may cost: counted work first, so that it ends alike wherever it is run.

Liquid limits loops one by one; a template of many loops, or a filter that multiplies a text, passes
by that. So every node rendered, every value looked up and every filter is paid for out of one
budget. Counting is the same on every machine, so a replay fails where the first run failed. The
processor time of the thread is a last resort behind it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from liquid import BoundTemplate, RenderContext, Token
from liquid.exceptions import ResourceLimitError
from liquid.utils import ReadOnlyChainMap

WORK_MAX: Final = 30_000  # nodes, look-ups and filters; long values count more
CPU_S_MAX: Final = 0.25
OUTPUT_BYTES_MAX: Final = 64 * 1024
TEXT_CHARS_MAX: Final = 256 * 1024  # of any value between two filters
ITEMS_MAX: Final = 20_000
INTEGER_BITS_MAX: Final = 256
_CHARS_PER_UNIT: Final = 64
_LOOK_AT_CLOCK: Final = 1_024


class Budget:
    """What one rendering may still spend, over all the templates that it takes."""

    __slots__ = ("_cpu_from_s", "_left", "_next_look", "_output_left")

    def __init__(self) -> None:
        self._left = WORK_MAX
        self._next_look = WORK_MAX - _LOOK_AT_CLOCK
        self._output_left = OUTPUT_BYTES_MAX
        self._cpu_from_s = 0.0

    def charge(self, units: int) -> None:
        """Pay for work; ResourceLimitError when nothing is left."""
        self._left -= units
        if self._left < self._next_look:
            if self._left < 0:
                raise ResourceLimitError(f"expected at most {WORK_MAX} steps", token=None)
            self._next_look = self._left - _LOOK_AT_CLOCK
            self._check_clock()

    def _check_clock(self) -> None:
        now_s = time.thread_time()
        self._cpu_from_s = self._cpu_from_s or now_s
        if now_s - self._cpu_from_s > CPU_S_MAX:
            raise ResourceLimitError(f"expected at most {CPU_S_MAX} s of work", token=None)

    def pay_output(self, text: str) -> str:
        """The text, paid for by its bytes."""
        self._output_left -= len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        if self._output_left < 0:
            raise ResourceLimitError(f"expected at most {OUTPUT_BYTES_MAX} bytes", token=None)
        return text


class Bounded(RenderContext):
    """A render context that pays for everything that is done in it."""

    __slots__ = ("charge",)

    def __init__(
        self, template: BoundTemplate, *, budget: Budget, scope: Mapping[str, Any]
    ) -> None:
        self.charge = budget.charge
        super().__init__(template, globals=scope)
        # Liquid's own chain ends in the machine's clock, under the names now and today.
        self.scope = ReadOnlyChainMap(self.locals, self.globals, self.counters)

    # Liquid asks every node whether its tag is disabled before rendering it: here, nodes pay.
    @property
    def disabled_tags(self) -> list[str]:
        self.charge(1)
        return []

    @disabled_tags.setter
    def disabled_tags(self, _: list[str]) -> None:
        pass

    def get(self, path: list[object], *, token: Token | None, **said: Any) -> object:
        """A look-up, paid by the size of what it finds, since something will walk over it."""
        found = super().get(path, token=token, **said)
        self.charge(1 + weight(found))
        return found

    def filter(self, name: str, token: Token | None) -> Callable[..., object]:
        """The filter, paid by the size of what goes in, and refusing what grows too large."""
        function = super().filter(name, token)

        def bounded(value: Any, *args: Any, **said: Any) -> object:
            self.charge(1 + weight(value) + sum(weight(arg) for arg in args))
            result = function(value, *args, **said)
            check_size(result)
            return result

        return bounded


def weight(value: Any) -> int:
    """What walking over a value costs; asks nothing of values that are not JSON."""
    kind = type(value)
    if kind is str:
        return len(value) // _CHARS_PER_UNIT
    if kind is list or kind is dict or kind is tuple:
        return len(value) // 8
    if kind is range:
        check_size(value)
        return len(value) // 8
    return 0


def check_size(value: Any) -> None:
    """Refuse a value that has grown too large to go on with."""
    kind = type(value)
    if kind is str and len(value) > TEXT_CHARS_MAX:
        raise ResourceLimitError(f"expected at most {TEXT_CHARS_MAX} characters", token=None)
    if kind is int and value.bit_length() > INTEGER_BITS_MAX:
        raise ResourceLimitError(f"expected integers of {INTEGER_BITS_MAX} bits", token=None)
    if kind is range and value.stop - value.start > ITEMS_MAX:
        raise ResourceLimitError(f"expected at most {ITEMS_MAX} items in a range", token=None)
    if kind is list and len(value) > ITEMS_MAX:
        raise ResourceLimitError(f"expected at most {ITEMS_MAX} items", token=None)
