"""Links come from what the type declares and from the keys of the event, each once, in order."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.insight import at, links_of
from penstock.registry.links import KINDS
from penstock.registry.schema import SchemaVersion

AT = datetime(2026, 3, 1, tzinfo=UTC)


def declaring(links: JsonValue) -> SchemaVersion:
    return SchemaVersion("a.b", 1, "active", {}, "h", {"links": links}, AT, "t", AT, "t")


@pytest.mark.parametrize(
    ("payload", "links"),
    [
        ({"workflowDefinitionId": "w"}, {"workflowDefinitionIds": ["w"]}),
        ({"workflow_definition_id": "w"}, {"workflowDefinitionIds": ["w"]}),
        ({"Workflow-Run-ID": "r"}, {"workflowRunIds": ["r"]}),
        ({"workflowId": "w"}, {"workflowIds": ["w"]}),
        ({"repositoryId": "r"}, {"repositoryIds": ["r"]}),
        ({"repoId": "r"}, {"repositoryIds": ["r"]}),
        ({"datasetId": "d"}, {"datasetIds": ["d"]}),
        ({"datasetsId": ["d", "e"]}, {"datasetIds": ["d", "e"]}),
        ({"datasetSlug": "weather"}, {"datasetSlugs": ["weather"]}),
        ({"assetId": "a"}, {"assetIds": ["a"]}),
        ({"timestoreDatasetId": "t"}, {"timestoreDatasetIds": ["t"]}),
        ({"timestoreDatasetSlug": "t"}, {"datasetSlugs": ["t"], "timestoreDatasetIds": ["t"]}),
        ({"dataset": {"slug": "weather"}}, {"datasetSlugs": ["weather"]}),
        ({"datasets": [{"slug": "weather"}]}, {"datasetSlugs": ["weather"]}),
        ({"dataset": {"info": {"slug": "weather"}}}, {"datasetSlugs": ["weather"]}),
        ({"timestore": {"slug": "t"}}, {"timestoreDatasetIds": ["t"]}),
        (
            {"timestoreDataset": {"slug": "t"}},
            {"datasetSlugs": ["t"], "timestoreDatasetIds": ["t"]},
        ),
        ({"slug": "alone"}, {}),
        ({"workflowDefinition": {"id": "w"}}, {"workflowDefinitionIds": ["w"]}),
        ({"parentWorkflowRun": {"id": "r"}}, {"workflowRunIds": ["r"]}),
        ({"workflow": {"id": "w"}}, {"workflowIds": ["w"]}),
        ({"workflows": [{"id": "w"}]}, {}),
        ({"repository": {"id": "r"}}, {"repositoryIds": ["r"]}),
        ({"sourceDataset": {"id": "d"}}, {"datasetIds": ["d"]}),
        ({"assets": [{"id": "a"}, {"id": "b"}]}, {"assetIds": ["a", "b"]}),
        ({"timestore": {"id": "t"}}, {"timestoreDatasetIds": ["t"]}),
        ({"timestoreDataset": {"id": "d"}}, {"datasetIds": ["d"]}),
        ({"id": "alone"}, {}),
        ({"person": {"id": "p"}}, {}),
        ({"rootWorkflowDefinition": "w"}, {"workflowDefinitionIds": ["w"]}),
        ({"lastWorkflowRun": "r"}, {"workflowRunIds": ["r"]}),
        ({"parentWorkflow": "w"}, {"workflowIds": ["w"]}),
        ({"sourceRepository": "r"}, {"repositoryIds": ["r"]}),
        ({"inputDataset": "d"}, {"datasetIds": ["d"]}),
        ({"upstreamAsset": ["a", "b"]}, {"assetIds": ["a", "b"]}),
        ({"assetId": 7}, {}),
        ({"assetId": "  "}, {}),
        ({"assetId": " a "}, {"assetIds": ["a"]}),
        ({"assetId": None}, {}),
        ({"assetIdentity": "a"}, {}),
        ([{"assetId": "a"}], {"assetIds": ["a"]}),
        ("assetId", {}),
        (None, {}),
    ],
)  # fmt: skip
def test_each_key_rule_finds_its_kind(payload: JsonValue, links: JsonObject) -> None:
    assert links_of(None, payload, {}) == links


@pytest.mark.parametrize(
    ("payload", "records"),
    [
        ({"namespace": "n", "key": "k"}, [{"namespace": "n", "key": "k"}]),
        (
            {"a": {"namespace": "n", "key": "k"}, "b": [{"namespace": "n", "key": "l"}]},
            [{"namespace": "n", "key": "k"}, {"namespace": "n", "key": "l"}],
        ),
        (
            {"namespace": "n", "key": "k", "record": {"namespace": "n", "key": "k"}},
            [{"namespace": "n", "key": "k"}],
        ),
        ({"namespace": "n"}, None),
        ({"namespace": "n", "key": 3}, None),
        ({"namespace": "", "key": "k"}, None),
    ],
)
def test_a_namespace_with_a_key_is_a_record(payload: JsonObject, records: JsonValue) -> None:
    assert links_of(None, payload, {}).get("metastoreRecords") == records


@pytest.mark.parametrize(
    ("payload", "node"),
    [
        (
            {"backendMountId": 1, "nodeId": 2, "path": "a/b"},
            {"backendMountId": 1, "nodeId": 2, "path": "a/b"},
        ),
        ({"backendMountId": "1"}, {"backendMountId": 1, "nodeId": None, "path": None}),
        (
            {"backendMountId": 1, "nodeId": "x", "path": 3},
            {"backendMountId": 1, "nodeId": None, "path": None},
        ),
        ({"backendMountId": True}, None),
        ({"backendMountId": "one"}, None),
        ({"backendMountId": None, "path": "a"}, None),
    ],
)
def test_a_mount_makes_a_node(payload: JsonObject, node: JsonValue) -> None:
    expected = None if node is None else [node]

    assert links_of(None, payload, {}).get("filestoreNodes") == expected


def test_a_link_is_kept_once_in_the_order_of_metadata_then_payload() -> None:
    metadata: JsonObject = {
        "__apphubWorkflow": {"workflowRunId": "r2", "workflowDefinitionId": "w"}
    }
    payload: JsonObject = {"workflowRunId": "r1", "deep": [{"workflowRunId": "r2"}, "x"]}

    assert links_of(None, payload, metadata) == {
        "workflowDefinitionIds": ["w"],
        "workflowRunIds": ["r2", "r1"],
    }


def test_kinds_come_in_a_fixed_order() -> None:
    payload: JsonObject = {"assetId": "a", "datasetId": "d", "workflowId": "w", "repoId": "r"}

    assert list(links_of(None, payload, {})) == [
        "workflowIds",
        "repositoryIds",
        "datasetIds",
        "assetIds",
    ]


def test_the_links_of_the_contract_s_example_are_found() -> None:
    payload: JsonObject = {"assetId": "asset-7", "workflowDefinitionId": "wf-alpha"}
    metadata: JsonObject = {"dataset": {"slug": "weather"}}

    assert links_of(None, payload, metadata) == {
        "workflowDefinitionIds": ["wf-alpha"],
        "datasetSlugs": ["weather"],
        "assetIds": ["asset-7"],
    }


def test_what_the_type_declares_comes_first() -> None:
    schema = declaring({"assetIds": "/primary", "datasetSlugs": "/where/names"})
    payload: JsonObject = {
        "assetId": "a",
        "primary": "b",
        "where": {"names": ["weather", "tides", 3]},
    }

    assert links_of(schema, payload, {}) == {
        "datasetSlugs": ["weather", "tides"],
        "assetIds": ["b", "a"],
    }


@pytest.mark.parametrize(
    "links",
    [None, 3, [], {"assetIds": 3}, {"assetIds": "/nowhere"}, {"other": "/a"}, {"assetIds": "/a/9"}],
)
def test_a_declaration_that_leads_nowhere_is_no_link(links: JsonValue) -> None:
    assert links_of(declaring(links), {"a": [1]}, {}) == {}


def test_a_declared_record_and_node_are_objects() -> None:
    schema = declaring({"metastoreRecords": "/r", "filestoreNodes": "/n"})

    assert links_of(schema, {"r": "x", "n": "y"}, {}) == {}


def test_a_document_as_deep_as_json_allows_is_walked() -> None:
    value: JsonValue = {"assetId": "a"}
    for _ in range(5_000):
        value = {"x": [value]}

    assert links_of(None, value, {}) == {"assetIds": ["a"]}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", {"a": [{"b/c": 1}], "": 2, "t~": 3}),
        ("/a/0/b~1c", 1),
        ("/", 2),
        ("/t~0", 3),
        ("/a/1", None),
        ("/a/x", None),
        ("/a/0/b~1c/d", None),
    ],
)
def test_a_pointer_leads_where_rfc_6901_says(pointer: str, value: JsonValue) -> None:
    assert at({"a": [{"b/c": 1}], "": 2, "t~": 3}, pointer) == value


def test_the_ten_kinds_are_those_of_the_contract() -> None:
    assert len(KINDS) == len(set(KINDS)) == 10
