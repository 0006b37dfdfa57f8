"""Run keys follow the rules of the seed: cleaned, kept short, compared without case."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.workflows.errors import RunKeyInvalid
from penstock.workflows.runkey import (
    RUN_KEY_MAX,
    fit_run_key,
    read_run_key,
    schedule_run_key,
    trigger_run_key,
)

ALLOWED = "ABCxyz019_.:-"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("orders", "orders"),
        ("Orders-2026--05", "Orders-2026-05"),
        ("--a---b--", "a-b"),
        ("a.b:c_d", "a.b:c_d"),
        ("x" * 120, "x" * 120),
        ("-" * 200 + "a", "a"),
    ],
)
def test_hyphens_collapse_and_the_ends_are_trimmed(text: str, key: str) -> None:
    assert read_run_key(text) == (key, key.lower())


@pytest.mark.parametrize("text", ["", "-", "---", "a b", "a/b", "é", " a", "a\n", "x" * 121])
def test_a_key_that_somebody_gives_and_that_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(RunKeyInvalid, match="expected") as refused:
        read_run_key(text)

    assert refused.value.faults[0].pointer == "/runKey"


@given(st.text(alphabet=ALLOWED, max_size=130))
def test_cleaning_a_clean_key_changes_nothing(text: str) -> None:
    try:
        once = read_run_key(text)
    except RunKeyInvalid:
        return

    assert read_run_key(once.key) == once
    assert fit_run_key(text) == once


@given(st.text(max_size=300))
def test_a_key_from_a_template_always_fits_or_is_nothing(text: str) -> None:
    try:
        fitted = fit_run_key(text)
    except RunKeyInvalid:
        return

    assert len(fitted.key) <= RUN_KEY_MAX
    assert read_run_key(fitted.key) == fitted
    assert fit_run_key(text) == fitted


@pytest.mark.parametrize(
    ("one", "other"), [("a b", "a/b"), ("a b", "a-b"), ("x" * 130, "x" * 131), ("ä1", "ö1")]
)
def test_keys_that_differ_stay_different_when_they_are_fitted(one: str, other: str) -> None:
    assert fit_run_key(one).normalized != fit_run_key(other).normalized


def test_the_keys_of_launchers_name_what_launched() -> None:
    assert trigger_run_key("t1", "d1").key == "trigger-t1-d1"
    assert schedule_run_key("s1", "20260501T000000Z").normalized == "schedule-s1-20260501t000000z"
