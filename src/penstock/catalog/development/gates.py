"""Declare what happens at quality gates: builds, tests, scans and reviews a change must pass."""

from __future__ import annotations

from penstock.catalog.development.fields import EntityId, Work, work
from penstock.catalog.platform.fields import Count, Name


class _Gate(Work):
    """What every event about a gate may say."""

    build_id: EntityId | None = None
    """The build it belongs to; it becomes a tag."""
    commit_sha: Name | None = None
    """The commit that is looked at."""
    attempt: Count | None = None
    """Which attempt this is."""


class GateBuildStarted(_Gate):
    """A change is being built."""

    command: str | None = None
    """How it is built."""


class GateTestStarted(_Gate):
    """The tests of a change are running."""

    suite: Name | None = None
    """Which tests."""
    tests_planned: Count | None = None
    """How many there are."""


class GateSecurityScanStarted(_Gate):
    """A change is being scanned for weaknesses."""

    scanner: Name | None = None
    """What scans it."""
    rules: list[str] | None = None
    """What is looked for."""


class GateReviewRequested(_Gate):
    """A gate asks people for their review."""

    reviewers: list[str] | None = None
    """Who was asked."""
    approvals_required: Count | None = None
    """How many must agree."""


_GATE = {"prId": "108", "buildId": "b-9", "commitSha": "9f2c1e7", "attempt": 1}
_TAGS = ("buildId",)

GATE_BUILD_STARTED = work(
    "GATE.BUILD.STARTED", GateBuildStarted, tags=_TAGS, example={**_GATE, "command": "make"}
)
GATE_TEST_STARTED = work(
    "GATE.TEST.STARTED",
    GateTestStarted,
    tags=_TAGS,
    example={**_GATE, "suite": "unit", "testsPlanned": 812},
)
GATE_SECURITY_SCAN_STARTED = work(
    "GATE.SECURITY.SCAN.STARTED",
    GateSecurityScanStarted,
    tags=_TAGS,
    example={**_GATE, "scanner": "semgrep", "rules": ["injection"]},
)
GATE_REVIEW_REQUESTED = work(
    "GATE.REVIEW.REQUESTED",
    GateReviewRequested,
    tags=_TAGS,
    example={**_GATE, "reviewers": ["ben"], "approvalsRequired": 1},
)

EVENTS = (
    GATE_BUILD_STARTED,
    GATE_TEST_STARTED,
    GATE_SECURITY_SCAN_STARTED,
    GATE_REVIEW_REQUESTED,
)
