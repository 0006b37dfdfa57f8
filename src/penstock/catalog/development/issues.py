"""Declare what happens to issues: assigned, updated, commented on, labelled."""

from __future__ import annotations

from typing import Literal

from penstock.catalog.development.fields import EntityId, Work, work
from penstock.catalog.platform.fields import Name


class _Issue(Work):
    """What every event about an issue may say."""

    title: str | None = None
    """The issue's title."""
    repository: Name | None = None
    """The repository it belongs to."""
    url: Name | None = None
    """Where people read it."""


class IssueAssigned(_Issue):
    """An issue was taken on by somebody."""

    assignee: Name | None = None
    """Who works on it from now on."""
    labels: list[str] | None = None
    """The labels it had."""
    selection_criteria: Literal["auto-next", "manual", "high-priority"] | None = None
    """Why it was this issue's turn."""


class IssueUpdated(_Issue):
    """An issue's text or state changed."""

    state: Name | None = None
    """The state it is in now."""
    changed_fields: list[str] | None = None
    """Which of its fields changed."""


class IssueCommentAdded(_Issue):
    """Somebody commented on an issue."""

    comment_id: EntityId | None = None
    """The comment."""
    author: Name | None = None
    """Who wrote it."""
    body: str | None = None
    """What it says."""


class IssueLabeledChanged(_Issue):
    """An issue got other labels."""

    labels: list[str] | None = None
    """All labels after the change."""
    added: list[str] | None = None
    """Those it got."""
    removed: list[str] | None = None
    """Those it lost."""


_ISSUE = {
    "platform": "github",
    "title": "Search is slow",
    "repository": "acme/shop",
    "url": "https://github.com/acme/shop/issues/42",
}

ISSUE_ASSIGNED = work(
    "ISSUE.ASSIGNED.SUCCESS",
    IssueAssigned,
    example={**_ISSUE, "assignee": "ana", "labels": ["bug"], "selectionCriteria": "auto-next"},
)
ISSUE_UPDATED = work(
    "ISSUE.UPDATED.SUCCESS",
    IssueUpdated,
    example={**_ISSUE, "state": "open", "changedFields": ["title"]},
)
ISSUE_COMMENT_ADDED = work(
    "ISSUE.COMMENT.ADDED",
    IssueCommentAdded,
    example={**_ISSUE, "commentId": "c-7", "author": "ben", "body": "It is the index."},
)
ISSUE_LABELED_CHANGED = work(
    "ISSUE.LABELED.CHANGED",
    IssueLabeledChanged,
    example={**_ISSUE, "labels": ["bug", "search"], "added": ["search"], "removed": []},
)

EVENTS = (ISSUE_ASSIGNED, ISSUE_UPDATED, ISSUE_COMMENT_ADDED, ISSUE_LABELED_CHANGED)
