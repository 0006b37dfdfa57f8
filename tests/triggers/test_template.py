"""Templates say what they should, cost what they may, and reach nothing else."""

from __future__ import annotations

import pickle
import time
from typing import Any

import pytest
from tests.triggers.definitions import document

from penstock.triggers.budget import OUTPUT_BYTES_MAX
from penstock.triggers.filters import FILTERS
from penstock.triggers.template import TemplateFailed, compile_text

NOW = "2026-03-01T12:00:00.000Z"


def render(source: str, payload: Any = None, **said: Any) -> str:
    shown = document({} if payload is None else payload)
    names = {"event": shown, "events": [shown], "trigger": {"id": "t-1"}, "now": NOW, **said}
    return compile_text(source).render(names)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("plain", "plain"),
        ("order-{{ event.payload.id }}", "order-7"),
        ("{{ event.payload.missing.deeper }}", ""),
        ("{{ event.payload.no }}", ""),
        ("{{ event.payload.yes }}", "true"),
        ("{{ event.payload.list }}", "[1,2]"),
        ("{{ event.payload.list[1] }}", "2"),
        ("{{ event.payload.list.size }}", "2"),
        ("{{ event.payload.map }}", '{"a":"b"}'),
        ("{{ event.payload.map | json }}", '{"a":"b"}'),
        ("{{ event.payload.word | json }}", '"Word"'),
        ("{{ event.payload.word | upcase }}", "WORD"),
        ("{{ event.payload.yes | append: '!' }}", "true!"),
        ("{{ event.payload.list | join: '-' }}", "1-2"),
        ("{{ event.payload.missing | default: 'none' }}", "none"),
        ("{{ event.payload.id | plus: 1 }}", "8"),
        ("{% if event.payload.yes %}y{% else %}n{% endif %}", "y"),
        ("{% for n in event.payload.list %}{{ n }};{% endfor %}", "1;2;"),
        ("{% assign x = event.payload.id %}{{ x }}", "7"),
        ("{% case event.payload.id %}{% when 7 %}seven{% endcase %}", "seven"),
        ("{{ trigger.id }} {{ now }}", f"t-1 {NOW}"),
    ],
)
def test_a_template_is_rendered(source: str, text: str) -> None:
    payload = {
        "id": 7, "no": None, "yes": True, "list": [1, 2], "map": {"a": "b"}, "word": "Word",
    }  # fmt: skip

    assert render(source, payload) == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ now | date: '%Y-%m-%d %H:%M:%S.%L %%' }}", "2026-03-01 12:00:00.000 %"),
        ("{{ 'now' | date: '%F' }}", "2026-03-01"),
        ("{{ 'today' | date: '%F' }}", "2026-03-01"),
        ("{{ 0 | date: '%F' }}", "1970-01-01"),
        ("{{ '2026-05-06' | date: '%j' }}", "126"),
        ("{{ event.occurredAt | date: '%s' }}", "1772366400"),
        ("{{ 'tomorrow' | date: '%F' }}", "tomorrow"),
        ("{{ '10:30' | date: '%F' }}", "10:30"),
    ],
)
def test_dates_know_only_the_moment_of_judging(source: str, text: str) -> None:
    assert render(source) == text


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("{{", "line 1, column 1"),
        ("a\n  {% if %}", "line 2, column 6"),
        ("{{ event.id | nosuch }}", "nosuch"),
        ("{{ event.id | upcas }}", "did you mean upcase"),
        ("{{ evnt.id }}", "did you mean event"),
        ("{{ today }}", "names event"),
        ("{{ parameters.id }}", "names event"),
        ("{% include 'x' %}", "include"),
        ("{% render 'x' %}", "render"),
        ("{% tablerow x in event.tags %}{% endtablerow %}", "tablerow"),
        ("{% increment x %}", "increment"),
        ("{% if true %}" * 11 + "{% endif %}" * 11, "nesting"),
        ("{{ event.id }}" * 1_000, "8000 characters"),
    ],
)
def test_what_is_not_listed_does_not_compile(source: str, sentence: str) -> None:
    with pytest.raises(TemplateFailed, match=sentence):
        compile_text(source)


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in (1..100000000) %}x{% endfor %}",
        "{% for i in (1..999) %}" * 3 + "x" + "{% endfor %}" * 3,
        "{% for i in (1..9999) %}{% endfor %}" * 100,
        "{% for i in (1..9999) %}{% assign a = i %}{% endfor %}" * 50,
        "{% for i in (1..9999) %}{% if event.payload.list contains 'x' %}{% endif %}{% endfor %}",
        "{{ 'aaaaaaaaaa' " + "| replace: 'a', 'aaaaaaaaaa' " * 12 + "}}",
        "{{ 'aaaaaaaaaa' " + "| replace: '', 'aaaaaaaaaa' " * 12 + "}}",
        "{% assign x = 'ab' %}{% for i in (1..99) %}{% assign x = x | append: x %}{% endfor %}",
        "{% assign x = 99 %}{% for i in (1..99) %}{% assign x = x | times: x %}{% endfor %}",
        "{{ (1..10000000000) | join: ',' }}",
        "{{ (1..9999999999999999999999999999) | size }}",
        "{{ (1..19999) | join: 'a long separator between the items' }}",
        "{{ event.payload.list | uniq | size }}",
        "{% for i in (1..99) %}{{ event.payload.list | sort | reverse | json | size }}{% endfor %}",
        "{% for i in (1..9000) %}{{ event }}{% endfor %}",
        "{% capture x %}{% for i in (1..9999) %}0123456789{% endfor %}{% endcapture %}",
    ],
    ids=range(16),
)
def test_a_template_bomb_ends_soon_and_says_so(source: str) -> None:
    payload = {"list": [f"item {n}" for n in range(5_000)]}
    compile_text(source)
    begun = time.thread_time()

    with pytest.raises(TemplateFailed, match=r"limit|at most|bits"):
        render(source, payload)

    assert time.thread_time() - begun < 0.2


@pytest.mark.parametrize(
    "source",
    [
        "{{ event.__class__ }}",
        "{{ event['__class__']['__mro__'] }}",
        "{{ event.id.__class__.__mro__[1].__subclasses__ }}",
        "{{ event.payload.items.__self__ }}",
        "{{ event.keys }}{{ event.get }}{{ event.id.format }}",
        "{{ trigger.__init__.__globals__ }}",
        "{{ now.__class__ }}",
        "{% assign x = event %}{{ x.__dict__ }}{{ x.__doc__ }}",
        "{{ event | map: '__class__' }}",
        "{{ events | map: '__dict__' | first }}",
        "{% for k in event.tags %}{{ k.__class__ }}{% endfor %}",
    ],
)
def test_nothing_of_python_is_within_reach(source: str) -> None:
    assert render(source).strip("[]nul") == ""


@pytest.mark.parametrize(
    "source",
    [
        "{{ self.__init__ }}",
        "{{ config }}",
        "{{ request.application.__globals__ }}",
        "{{ ''.__class__ }}",
        "{{ lipsum() }}",
        "{% import os %}",
        "{{ [event.payload.name] }}",
        "{{ event.id | attr: '__class__' }}",
        "{% include '/etc/passwd' %}",
    ],
)
def test_what_attacks_other_engines_does_not_even_compile(source: str) -> None:
    with pytest.raises(TemplateFailed):
        compile_text(source)


def test_what_an_event_says_is_never_a_template() -> None:
    assert render("{{ event.payload.x }}", {"x": "{{ now }}"}) == "{{ now }}"
    assert render("{{ event.payload.x | strip }}", {"x": "{{ now }}"}) == "{{ now }}"


@pytest.mark.parametrize(
    "source",
    [
        "{{ 1 | divided_by: 0 }}",
        "{{ now | date: '%Q' }}",
        "{{ event.id | base64_decode }}",
        "{{ event.payload.n | slice: 'a' }}",
        "{{ event.payload.n | ceil }}",
        "{{ event.payload.mixed | sort }}",
        "{% break %}",
    ],
)
def test_what_cannot_be_rendered_fails_as_one_error(source: str) -> None:
    with pytest.raises(TemplateFailed):
        render(source, {"n": "1e999", "mixed": [1, "a", None]})


@pytest.mark.parametrize("name", sorted(FILTERS))
@pytest.mark.parametrize("value", ["text", "12", 7, 1.5, True, None, [3, "a"], {"k": [1]}, "", []])
def test_every_filter_takes_every_value_or_fails_as_one_error(name: str, value: Any) -> None:
    for arguments in ("", ": 'k'", ": 2", ": 'a', 'b'", ": event.payload.v"):
        try:
            render(f"{{{{ event.payload.v | {name}{arguments} }}}}", {"v": value})
        except TemplateFailed as failed:
            assert failed.detail


def test_a_direct_look_up_pays_for_its_output_too() -> None:
    with pytest.raises(TemplateFailed, match="bytes"):
        render("{{ event.payload.x }}", {"x": "é" * (OUTPUT_BYTES_MAX // 2 + 1)})


def test_strict_makes_what_is_missing_an_error_unless_a_default_is_given() -> None:
    strict = {"event": document({"a": 1})}

    with pytest.raises(TemplateFailed, match=r"event\.payload\.b is undefined"):
        compile_text("{{ event.payload.b }}", strict=True).render(strict)
    with pytest.raises(TemplateFailed, match="undefined"):
        compile_text("{{ event.payload.b | upcase }}", strict=True).render(strict)
    kind = "{{ event.payload.b | default: 'x' }}{% if event.payload.c %}{% endif %}"
    assert compile_text(kind, strict=True).render(strict) == "x"
    assert compile_text("{{ event.payload.a }}", strict=True).render(strict) == "1"


def test_a_failure_travels_between_processes() -> None:
    with pytest.raises(TemplateFailed) as caught:
        compile_text("a\n{% if %}")

    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301

    assert (str(again), again.faults, again.line, again.column) == (
        str(caught.value), caught.value.faults, 2, 4,
    )  # fmt: skip
