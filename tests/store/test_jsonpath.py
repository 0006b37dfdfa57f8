"""A jsonPath is understood as a path or as a predicate, and from both roots."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.base.errors import QueryInvalid
from penstock.store.jsonpath import JsonPath, read_path


@pytest.mark.parametrize(
    "text",
    [
        '$.x == "y"',
        "$.x = 1",
        "$.x<>1",
        "$.x != 1",
        "$.x >= 1",
        "($.x == 1)",
        "( ( $.x == 1 ) )",
        "strict $.x == 1",
        "LAX ($.x == 1)",
        "!($.x == 1)",
        "!exists($.x)",
        "exists($.x)",
        "EXISTS ($.x)",
        "($.x == 1) is unknown",
        "($.x == 1) Is Unknown",
        '$.x starts with "a"',
        '$.x STARTS WITH "a"',
        '$.x like_regex "^a" flag "i"',
        "$.x == 1 && $.y == 2",
        "($.x == 1) || ($.y == 2)",
        "$.x[*] ? (@ > 1) == 2",
        "$.x == 1 ? (@ == 1)",
        "1 == $.x",
        "$.x.type() == $.y.type()",
    ],
)
def test_an_operator_of_truth_outside_all_brackets_makes_a_predicate(text: str) -> None:
    assert read_path(text) == JsonPath(text, is_predicate=True)


@pytest.mark.parametrize(
    "text",
    [
        "$",
        "$.x",
        "$.x.y[0].z",
        "$.x[*] ? (@ > 1)",
        '$.x ? (@ == "a == b").y',
        '$."a == b"',
        '$."exists"',
        "$.exists",
        "$.is.unknown",
        "$ . starts . with",
        "$.like_regex",
        "($.x)",
        "strict $.x",
        "($.x == 1).type()",
        "($.x == 1) ? (@ == false)",
        "$.x[last - 1]",
        '$."quote \\" == "',
        "$.x + $.y",
        "-$.x",
        "$.**{2 to last}.x",
        "$.x[0 to 2, 5]",
        "$.decimal(1,2)",
    ],
)
def test_everything_else_is_a_path(text: str) -> None:
    assert read_path(text) == JsonPath(text, is_predicate=False)


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("$.payload", "$"),
        ("$.payload.assetId", "$.assetId"),
        ('$."payload".assetId', "$.assetId"),
        ("$ . payload . assetId", "$  . assetId"),
        ("$.payload[*] ? (@.x > $.payload.limit)", "$[*] ? (@.x > $.limit)"),
        ("strict $.payload.payload", "strict $.payload"),
    ],
)
def test_the_payload_of_the_envelope_is_the_root(text: str, stripped: str) -> None:
    assert read_path(text) == JsonPath(stripped, is_predicate=False, inner=text)


@pytest.mark.parametrize(
    "text",
    [
        "$.payloads.x",
        "$.x.payload",
        '$.x ? (@ == "$.payload")',
        "$ ? (@.payload == 1)",
        "$.Payload",
    ],
)
def test_another_payload_is_not_the_envelopes(text: str) -> None:
    assert read_path(text).inner is None


@pytest.mark.parametrize(
    ("text", "plain", "is_predicate"),
    [
        ("/* a ? comment ( */ $.x == 1", "  $.x == 1", True),
        ("$.x/* == */", "$.x ", False),
        ("exists/**/($.x)", "exists ($.x)", True),
        ("strict/* $.payload */$.x", "strict $.x", False),
        ('$."/* no comment */"', '$."/* no comment */"', False),
    ],
)
def test_a_comment_is_a_blank(text: str, plain: str, is_predicate: bool) -> None:
    assert read_path(text) == JsonPath(plain, is_predicate)


@pytest.mark.parametrize(
    "text", ["", " ", "x", '"$"', "/* $ */ 1", "@.x", "$name", '$"name" == 1', "$.x == $y", "$.a\0"]
)
def test_what_cannot_be_asked_of_a_payload_is_refused(text: str) -> None:
    with pytest.raises(QueryInvalid) as refusal:
        read_path(text)

    assert refusal.value.parameter == "jsonPath"


def test_a_path_may_have_500_characters_and_no_more() -> None:
    assert read_path("$." + "a" * 498).path
    with pytest.raises(QueryInvalid, match="at most 500 characters, found 501"):
        read_path("$." + "a" * 499)


@given(st.text(alphabet='$.@?()[]{}!=<>&|*"\\/ payload\n-', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(QueryInvalid):
        assert read_path(text).path


# A grammar that knows what it makes: paths and predicates as PostgreSQL's own grammar has them.
_gap = st.sampled_from(["", " ", "\n", "/* ( == */"])
_member = st.sampled_from(
    [".a", ".payload", ".exists", ".is", '."a == b"', '."x\\"&&"', "[*]", "[0]", "[last]",
     ".*", ".type()", ".size()", ".**", ".starts", ". unknown"]
)  # fmt: skip
_literal = st.sampled_from(["1", '"x"', '"== ("', "true", "null", "-1.5"])


def _paths(root: str, predicates: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    filtered = st.builds("{}?{}({})".format, _gap, _gap, predicates) | st.just("")
    walked = st.builds(lambda ms: root + "".join(ms), st.lists(_member, max_size=3))
    return st.builds("{}{}".format, walked, filtered)


def _predicates(root: str, depth: int) -> st.SearchStrategy[str]:
    inner = st.just("@.x == 1") if depth == 0 else _predicates("@", depth - 1)
    path = _paths(root, inner)
    compare = st.builds(
        "{} {} {}".format, path, st.sampled_from(["==", "<", ">=", "<>", "!="]), _literal
    )
    simple = (
        compare
        | st.builds("exists{}({})".format, _gap, path)
        | st.builds('{} starts with "x"'.format, path)
        | st.builds('{} like_regex "(a|b)=="'.format, path)
    )
    wrapped = st.builds("({})".format, simple)
    return (
        simple
        | wrapped
        | st.builds("!{}{}".format, _gap, wrapped)
        | st.builds("{} is unknown".format, wrapped)
        | st.builds("{} {} {}".format, simple, st.sampled_from(["&&", "||"]), simple)
    )


_mode = st.sampled_from(["", "strict ", "lax ", "STRICT\n"])
_predicate = st.builds("{}{}{}".format, _mode, _gap, _predicates("$", 1))
_path = st.builds("{}{}{}".format, _mode, _gap, _paths("$", _predicates("@", 1))) | st.builds(
    "({}).type()".format, _predicates("$", 0)
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(made=st.tuples(_predicate, st.just(True)) | st.tuples(_path, st.just(False)))
def test_paths_and_predicates_are_told_apart_as_postgresql_does(
    made: tuple[str, bool], connection: psycopg.Connection[tuple[object, ...]]
) -> None:
    text, is_predicate = made

    read = read_path(text)

    assert read.is_predicate is is_predicate
    for form in filter(None, (read.path, read.inner)):
        connection.execute("SELECT %s::jsonpath", (form,))


@pytest.fixture
def connection(shared_database: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(shared_database, autocommit=True) as opened:
        yield opened
