"""Compile regular expressions that cannot run away: RE2, in time linear in the text.

What RE2 cannot do in linear time (look-around, back references) it refuses when the trigger is
saved, and so do we. Patterns that grow huge when expanded are refused by the memory they may take;
only the first `TEXT_CHARS_MAX` characters of a text are looked at, which bounds what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

import re2  # type: ignore[import-untyped]

TEXT_CHARS_MAX: Final = 8_192
_MEMORY_BYTES_MAX: Final = 192 * 1024
_INLINE: Final = "ims"  # the flags that change what matches; y anchors, g and u say what RE2 does

Test: TypeAlias = Callable[[str], bool]


class RegexInvalid(ValueError):
    """A regular expression that RE2 does not compile; the message says why."""


@lru_cache(1024)
def compile_regex(pattern: str, flags: str = "", *, whole: bool = False) -> Test:
    """A test of texts; `whole` asks that all of a text matches, else any part of it may."""
    inline = "".join(flag for flag in _INLINE if flag in flags)
    options = re2.Options()
    options.max_mem = _MEMORY_BYTES_MAX
    options.log_errors = False
    options.never_capture = True
    try:
        compiled = re2.compile(f"(?{inline}){pattern}" if inline else pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise RegexInvalid(_sentence(error)) from None
    look = compiled.search
    if whole:
        look = compiled.fullmatch
    elif "y" in flags:
        look = compiled.match

    def test(text: str) -> bool:
        # Bytes spare RE2's wrapper the counting of characters for offsets that nobody asks for.
        return look(text[:TEXT_CHARS_MAX].encode("utf-8", "surrogatepass")) is not None

    return test


def _sentence(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "expected a regular expression of whole characters, found lone surrogates"
    said = error.args[0] if error.args else error
    reason = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return (
        "expected a regular expression that runs in linear time (RE2: no look-around,"
        f" no back references), found one that does not compile: {reason[:200]}"
    )
