"""Regular expressions run in linear time, or are refused."""

from __future__ import annotations

import time

import pytest

from penstock.triggers.regexes import TEXT_CHARS_MAX, RegexInvalid, compile_regex


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(x+x+)+y", "(.*)*z", "(?:a?){60}a{60}"])
def test_a_catastrophic_regex_is_harmless(pattern: str) -> None:
    begun = time.thread_time()

    compile_regex(pattern)("a" * 100_000 + "!")

    assert time.thread_time() - begun < 0.5


@pytest.mark.parametrize(
    ("pattern", "because"),
    [
        ("(", "missing"),
        (r"(a)\1", "escape"),
        ("(?=a)", "perl operator"),
        ("((a{100}){100}){100}", "repetition"),
        (r"\p{L}{1,900}", "too large"),
        ("\ud800", "surrogates"),
    ],
)
def test_what_re2_cannot_compile_is_refused_with_the_reason(pattern: str, because: str) -> None:
    with pytest.raises(RegexInvalid, match=because):
        compile_regex(pattern)


def test_flags_change_what_matches() -> None:
    assert compile_regex("^b.c$", "ims")("a\nB\nC")
    assert not compile_regex("b", "y")("ab")
    assert compile_regex("a", "y")("ab")
    assert compile_regex("é.", "gu")("éé")


def test_an_alternative_is_not_torn_apart_by_flags() -> None:
    assert compile_regex("a|B", "i")("b")


def test_only_the_beginning_of_a_long_text_is_looked_at() -> None:
    assert compile_regex("z")("a" * (TEXT_CHARS_MAX - 1) + "z")
    assert not compile_regex("z")("a" * TEXT_CHARS_MAX + "z")
