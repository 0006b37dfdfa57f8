"""The code in the guide runs, and does what the guide says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.store.timetravel.support import ISSUE, said, travel_over, value

GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "time-travel.md").read_text()


def test_the_reducer_of_the_guide_counts_by_type() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    made: dict[str, Any] = {}
    exec(code, made)  # noqa: S102  our own guide
    events = [said(n, {}, type="ISSUE.UPDATED.SUCCESS") for n in (1, 2)]
    events.append(said(3, {}, type="CODE.MERGED.SUCCESS"))

    found = value(travel_over(events, reducers=[made["issue_workload"]]), reducer="issue-workload")

    assert found == {
        "byType": {"ISSUE.UPDATED.SUCCESS": 2}, "lastAt": events[1].received_at.isoformat(),
    }  # fmt: skip
    assert made["issue_workload"].tags == ("issueId",)
    assert ISSUE.tags[0][0] == "issueId"
