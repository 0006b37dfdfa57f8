"""Say which names events and sources may have, and what globs stand for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.envelope.names import (
    glob_regex,
    is_glob,
    matches_glob,
    source_fault,
    type_fault,
)


@pytest.mark.parametrize(
    "name",
    [
        "asset.produced",
        "metastore.record.updated",
        "timestore.dataset.export.completed",
        "timestore.schema.backfill.requested",
        "retry.backlog.threshold",
        "a.b.c.d.e.f",
        "core.asset-materializer.run_42",
        "s3.object.2created",
        "WORKFLOW.STARTED",
        "WORKFLOW.STEP_COMPLETED",
        "CODE.MERGED.SUCCESS",
        "GATE.SECURITY.SCAN.STARTED",
        "a." + "b" * 198,
    ],
)
def test_a_name_of_either_style_is_an_event_type(name: str) -> None:
    assert type_fault(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "asset",
        "ASSET",
        "asset.",
        ".asset",
        "asset..produced",
        "a.b.c.d.e.f.g",
        "Asset.Produced",
        "asset.PRODUCED",
        "ASSET.produced",
        "asset.produced ",
        "asset.produced\n",
        "asset.pro duced",
        "asset.-x",
        "asset._x",
        "1asset.produced",
        "asset/produced.x",
        "../etc.passwd",
        "asset.*",
        "ásset.produced",
        "CODE-X.MERGED",
        "profile:due.x",
        "a." + "b" * 199,
        "a." + "b" * 300_000,
    ],
)
def test_any_other_name_is_no_event_type(name: str) -> None:
    fault = type_fault(name)

    assert fault is not None
    assert fault.startswith("expected")
    assert len(fault) < 300


@pytest.mark.parametrize(
    "name",
    [
        "metastore.worker",
        "kernel.scheduler",
        "metadata-studio.api",
        "system",
        "A.B_c",
        "/mycontext",
        "https://github.com/cloudevents/spec/pull?x=1&y=%20#f",
        "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66",
        "//[::1]:80/x",
        "a" * 200,
    ],
)
def test_a_dotted_name_or_a_uri_reference_is_a_source(name: str) -> None:
    assert source_fault(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a b",
        "a\tb",
        "a\n",
        "a\\b",
        "*",
        "a'b",
        'a"b',
        "<script>",
        "{x}",
        "a|b",
        "é.b",
        ".a",
        "-a",
        "a" * 201,
        "\x1b[31m",
    ],
)
def test_any_other_text_is_no_source(name: str) -> None:
    assert (source_fault(name) or "").startswith("expected")


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("metastore.record.*", ["metastore.record.updated"], ["metastore.record", "metastore.a.b"]),
        ("metastore.record.*", [], ["metastore.record.a.b", "xmetastore.record.a"]),
        ("metastore.**", ["metastore.a", "metastore.a.b.c"], ["metastorex.a", "a.metastore.b"]),
        ("**", ["a.b", "A.B.C"], []),
        ("**.**", ["a.b", "A.B.C"], []),
        ("**.a.**.**", ["a", "b.a", "b.a.c.d"], ["b.c"]),
        ("**.failed", ["job.failed", "a.b.failed"], ["job.failedx", "failed.job"]),
        ("a.**.z", ["a.z", "a.b.z", "a.b.c.z"], ["a.b", "z.a", "az"]),
        ("*.*", ["a.b"], ["a.b.c"]),
        ("**.record.**", ["metastore.record.updated", "x.record"], ["metastore.records.updated"]),
        ("metastore.rec*.*", ["metastore.record.x", "metastore.rec.x"], ["metastore.re.x"]),
        ("*.*ed", ["a.produced", "a.ed"], ["a.producing"]),
        ("a.b*c*d", ["a.bcd", "a.bxxcyyd"], ["a.bd", "a.b.c.d"]),
        ("a.b**", ["a.b", "a.bcd"], ["a.b.c"]),
        ("asset.produced", ["asset.produced"], ["asset.producedx", "assetxproduced"]),
        ("a+.b*", ["a+.bc"], ["aa.bc", "a.bc"]),
        ("a.(x|y)*", ["a.(x|y)z"], ["a.x", "a.y"]),
    ],
)
def test_a_glob_stands_for_these_and_not_for_those(
    pattern: str, matching: list[str], other: list[str]
) -> None:
    assert [name for name in matching if not matches_glob(pattern, name)] == []
    assert [name for name in other if matches_glob(pattern, name)] == []


def test_only_a_star_makes_a_glob() -> None:
    assert is_glob("a.*")
    assert is_glob("a.b**")
    assert not is_glob("a.b?[c]")


segments = st.sampled_from(["a", "b", "ab", "ba", "aab"])
names = st.lists(segments, min_size=1, max_size=5).map(".".join)
patterns = st.lists(
    st.sampled_from(["a", "b", "*", "**", "a*", "*b", "a*b", "*a*"]), min_size=1, max_size=4
).map(".".join)


@given(patterns, names)
def test_a_glob_means_what_its_definition_says(pattern: str, name: str) -> None:
    assert matches_glob(pattern, name) is defined(pattern.split("."), name.split("."))


@given(patterns, names)
def test_the_regular_expression_means_the_same_as_the_glob(pattern: str, name: str) -> None:
    assert bool(re.search(glob_regex(pattern), name)) is matches_glob(pattern, name)


def defined(pattern: list[str], name: list[str]) -> bool:
    """The meaning of a glob, segment by segment."""
    if not pattern:
        return not name
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        return any(defined(rest, name[count:]) for count in range(len(name) + 1))
    if not name or not defined(rest, name[1:]):
        return False
    if first == "*":
        return True
    literal = ".*".join(re.escape(part) for part in first.split("*"))
    return re.fullmatch(literal, name[0]) is not None
