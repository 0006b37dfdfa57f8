"""YAML is read as JSON with less ink."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.triggers.yaml_text import YamlInvalid, read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", {"a": 1}),
        ("a: 1.5", {"a": 1.5}),
        ("a: true", {"a": True}),
        ("a: null", {"a": None}),
        ("a:", {"a": None}),
        ("a: ~", {"a": None}),
        ("a: no", {"a": "no"}),
        ("a: Yes", {"a": "Yes"}),
        ("a: 010", {"a": "010"}),
        ("a: 0x1F", {"a": "0x1F"}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: .inf", {"a": ".inf"}),
        ("a: 2026-01-01", {"a": "2026-01-01"}),
        ("a: 12:30:45", {"a": "12:30:45"}),
        ('a: "1"', {"a": "1"}),
        ("a: '{{ event.id }}'", {"a": "{{ event.id }}"}),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("- 1\n- [a, {b: c}]", [1, ["a", {"b": "c"}]]),
        ("1: one", {"1": "one"}),
        ("<<: x", {"<<": "x"}),
    ],
)
def test_a_plain_word_means_what_it_would_in_json_or_is_a_text(text: str, value: Any) -> None:
    (read,) = read_yaml(text)

    assert read.value == value


def test_a_file_may_hold_several_documents_and_empty_ones_do_not_count() -> None:
    assert [read.value for read in read_yaml("---\na: 1\n---\n---\nb: 2\n")] == [
        {"a": 1}, None, {"b": 2},
    ]  # fmt: skip
    assert read_yaml("# nothing\n") == []


def test_every_place_knows_its_line() -> None:
    (read,) = read_yaml("a: 1\nb:\n  - c: 2\n    d/e: 3\n")

    assert read.line_of("/a") == 1
    assert read.line_of("/b/0/c") == 3
    assert read.line_of("/b/0/d~1e") == 4
    assert read.line_of("/b/0/nothing/here") == 3
    assert read.line_of("/zzz") == 1


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("a: 1\na: 2", 2, "each key once"),
        ("a: &x 1\nb: *x", 2, "no aliases"),
        ("a: !!python/object/apply:os.system ['x']", 1, "no tags"),
        ("a: !mine x", 1, "no tags"),
        ("a: !!str 12", 1, "no tags"),
        ("a: 1\n  b: [", 2, "expected YAML"),
        ("? [a]\n: 1", 1, "text as key"),
        ("a: 99999999999999999999999", 1, "2|range|63"),
        ("\x00", 1, "expected YAML"),
        ("[" * 5_000, 1, "32 levels"),
        ("a: " + "x" * 1_100_000, 1, "1048576 bytes"),
    ],
)
def test_what_could_be_harmful_or_meant_otherwise_is_refused(
    text: str, line: int, sentence: str
) -> None:
    with pytest.raises(YamlInvalid, match=sentence) as caught:
        read_yaml(text)

    assert caught.value.line == line


def test_a_billion_laughs_are_refused_unread() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]

    with pytest.raises(YamlInvalid, match="no aliases"):
        read_yaml("\n".join(lines))
