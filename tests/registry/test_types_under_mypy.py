"""A type checker knows which payload belongs to which event type, and refuses every other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAD = """
from typing import assert_type

from penstock.catalog.development.code import CODE_MERGED, CodeMerged
from penstock.catalog.development.issues import ISSUE_ASSIGNED, IssueAssigned
from penstock.catalog.development.vocabulary import DEVELOPMENT
from penstock.catalog.governance.fields import EntityType
from penstock.catalog.governance.profiles import METADATA_PROFILE_DUE, MetadataProfileDue
from penstock.catalog.platform.metastore import RECORD_UPDATED, RecordUpdated
from penstock.catalog.platform.workflows import JOB_RUN_FAILED, JobRunFailed
from penstock.envelope.envelope import Envelope, JsonObject, Stored
from penstock.publish.publisher import Publisher
from penstock.registry.declare import EventType, Payload, Vocabulary

"""
GOOD = '''
assert_type(ISSUE_ASSIGNED, EventType[IssueAssigned])
assert_type(METADATA_PROFILE_DUE, EventType[MetadataProfileDue])
assert_type(RECORD_UPDATED, EventType[RecordUpdated])
assert_type(JOB_RUN_FAILED, EventType[JobRunFailed])


class Placed(Payload):
    """An order was placed."""

    order_id: str


PLACED = EventType("order.placed", Placed, sources=("shop.api",))
SHOP = Vocabulary("shop", (PLACED, ISSUE_ASSIGNED))
assert_type(PLACED, EventType[Placed])


def build(publisher: Publisher) -> None:
    event = ISSUE_ASSIGNED.event(
        IssueAssigned(issue_id="42", assignee="ana"), source="system", tags={"team": "search"}
    )
    assert_type(event, JsonObject)
    publisher.publish(event)
    assert_type(IssueAssigned(issue_id="42").event(source="system"), JsonObject)
    IssueAssigned.event(IssueAssigned(issue_id="42"), tags={"team": "search"})
    publisher.publish(PLACED, payload=Placed(order_id="o-1"))
    METADATA_PROFILE_DUE.event(
        MetadataProfileDue(
            entity_type=EntityType.KPI, entity_id="k", canonical_key="c", tier="tier1"
        )
    )


def read(event: Stored | Envelope | JsonObject) -> str | None:
    assert_type(ISSUE_ASSIGNED.read(event), IssueAssigned | None)
    if (assigned := ISSUE_ASSIGNED.read(event)) is not None:
        assert_type(assigned, IssueAssigned)
        assert_type(assigned.assignee, str | None)
        return assigned.assignee
    if (placed := PLACED.read(event)) is not None:
        return placed.order_id
    return None


def match(event: Stored) -> str | None:
    match DEVELOPMENT.read(event):
        case IssueAssigned(assignee=who) as assigned:
            assert_type(who, str | None)
            assert_type(assigned.issue_id, str | None)
            return who
        case CodeMerged() as merged:
            assert_type(merged.merge_sha, str | None)
            return merged.merge_sha
        case Payload():
            return "something else of this vocabulary"
        case None:
            return None


def any_type(event_type: EventType, typed: EventType[IssueAssigned]) -> tuple[EventType, ...]:
    return (event_type, typed, CODE_MERGED)
'''
BAD = {
    "ISSUE_ASSIGNED.event(CodeMerged())": "expected",
    "ISSUE_ASSIGNED.event({'issueId': '42'})": "expected",
    "ISSUE_ASSIGNED.event(IssueAssigned(), sorce='system')": "Unexpected keyword",
    "ISSUE_ASSIGNED.event(IssueAssigned(), tags={'issueId': 42})": "str",
    "IssueAssigned().event(sorce='system')": "Unexpected keyword",
    "IssueAssigned(issue_id=[])": "incompatible type",
    "IssueAssigned(mode='party')": "incompatible type",
    "MetadataProfileDue(tier='tier1')": "Missing named argument",
    "MetadataProfileDue(entity_type=EntityType.KPI, entity_id='k', canonical_key='c', tier='T1')": (
        "incompatible type"
    ),
    "print(ISSUE_ASSIGNED.read({}).assignee)": "None",
    "print((ISSUE_ASSIGNED.read({}) or IssueAssigned()).merge_sha)": "no attribute",
}


def check(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    file = folder / "program.py"
    file.write_text(HEAD + source)
    return subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--no-incremental"),
            *("--config-file", str(ROOT / "pyproject.toml"), "--follow-imports", "silent"),
            str(file),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What mypy says about each bad line; all are checked in one run."""
    done = check(tmp_path_factory.mktemp("bad"), "\n".join(BAD))
    first = HEAD.count("\n") + 1
    said = dict.fromkeys(BAD, "")
    for line in done.stdout.splitlines():
        if ": error: " in line:
            number = int(line.split("program.py:")[1].split(":")[0])
            said[list(BAD)[number - first]] += line
    return said


def test_building_reading_and_matching_narrow_to_the_payload_of_the_type(tmp_path: Path) -> None:
    done = check(tmp_path, GOOD)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("line", sorted(BAD))
def test_a_payload_of_another_type_is_refused_before_it_runs(
    complaints: dict[str, str], line: str
) -> None:
    assert BAD[line] in complaints[line]
