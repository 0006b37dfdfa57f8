"""A receiver that fails in a row is spared, asked once, and trusted again when it answers."""

from __future__ import annotations

from penstock.workflows.launch.circuit import Circuits


def test_a_row_of_failures_opens_and_one_answer_closes() -> None:
    circuits = Circuits(failures_max=2, rest_s=10)
    circuits.note("a", 0, answered=False)
    assert circuits.rests_for("a", 0) == 0
    circuits.note("a", 1, answered=False)

    assert circuits.rests_for("a", 1) == 10
    assert circuits.rests_for("a", 10.5) == 0.5
    assert circuits.rests_for("b", 1) == 0
    assert circuits.rests_for("a", 11) == 0, "the one try"
    assert circuits.rests_for("a", 11) == 10, "others wait for it"

    circuits.note("a", 12, answered=True)
    assert circuits.rests_for("a", 12) == 0


def test_an_answer_in_between_breaks_the_row() -> None:
    circuits = Circuits(failures_max=2)
    for answered in (False, True, False, True, False):
        circuits.note("a", 0, answered=answered)

    assert circuits.rests_for("a", 0) == 0


def test_a_failed_try_opens_again() -> None:
    circuits = Circuits(failures_max=1, rest_s=10)
    circuits.note("a", 0, answered=False)
    assert circuits.rests_for("a", 10) == 0
    circuits.note("a", 10, answered=False)

    assert circuits.rests_for("a", 11) == 9


def test_only_so_many_receivers_are_remembered() -> None:
    circuits = Circuits(failures_max=1, receivers_max=2)
    for name in "abc":
        circuits.note(name, 0, answered=False)

    assert circuits.rests_for("a", 0) == 0
    assert circuits.rests_for("c", 0) > 0
