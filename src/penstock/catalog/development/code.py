"""Declare what happens to code: generated or not, put up for review, merged."""

from __future__ import annotations

from typing import Literal

from penstock.catalog.development.fields import Work, work
from penstock.catalog.platform.fields import Count, Name
from penstock.envelope.envelope import Severity


class _Change(Work):
    """What every event about a change of code may say."""

    repository: Name | None = None
    """The repository that changes."""
    base_branch: Name | None = None
    """The branch it shall go to."""
    head_branch: Name | None = None
    """The branch it is on."""


class _Generation(_Change):
    """What every attempt to generate code may say."""

    model: Name | None = None
    """The model that was asked."""
    attempt: Count | None = None
    """Which attempt this was."""
    duration_ms: Count | None = None
    """How long it took."""


class CodeGenerated(_Generation):
    """Code was generated and written to a branch."""

    commit_sha: Name | None = None
    """The commit that holds it."""
    files_changed: Count | None = None
    """How many files it touches."""
    lines_added: Count | None = None
    """How many lines it adds."""
    lines_deleted: Count | None = None
    """How many lines it removes."""
    actual_tokens: Count | None = None
    """How many tokens it took."""


class CodeGenerationFailed(_Generation):
    """An attempt to generate code came to nothing."""

    error: str | None = None
    """What went wrong."""
    error_code: Name | None = None
    """The same as a word for programs."""
    is_retryable: bool | None = None
    """Whether trying again may help."""


class CodeReviewRequested(_Change):
    """A change was put up for review."""

    title: str | None = None
    """What the pull request is called."""
    url: Name | None = None
    """Where people read it."""
    reviewers: list[str] | None = None
    """Who was asked."""


class CodeMerged(_Change):
    """A change was merged."""

    merge_strategy: Literal["merge", "squash", "rebase"] | None = None
    """How it was merged."""
    merge_sha: Name | None = None
    """The commit it became."""
    merged_by: Name | None = None
    """Who merged it."""


_CHANGE = {
    "prId": "108",
    "platform": "github",
    "repository": "acme/shop",
    "baseBranch": "main",
    "headBranch": "issue-42",
}
_GENERATION = {**_CHANGE, "provider": "anthropic", "model": "large", "attempt": 1}

CODE_GENERATED = work(
    "CODE.GENERATED.SUCCESS",
    CodeGenerated,
    example={
        **_GENERATION,
        "durationMs": 41_000,
        "commitSha": "9f2c1e7",
        "filesChanged": 3,
        "linesAdded": 57,
        "linesDeleted": 12,
        "actualTokens": 18_200,
    },
)
CODE_GENERATION_FAILED = work(
    "CODE.GENERATED.FAILED",
    CodeGenerationFailed,
    severity=Severity.ERROR,
    example={
        **_GENERATION,
        "durationMs": 60_000,
        "error": "no answer within a minute",
        "errorCode": "timeout",
        "isRetryable": True,
    },
)
CODE_REVIEW_REQUESTED = work(
    "CODE.REVIEW.REQUESTED",
    CodeReviewRequested,
    example={
        **_CHANGE,
        "title": "Use the index",
        "url": "https://github.com/acme/shop/pull/108",
        "reviewers": ["ben"],
    },
)
CODE_MERGED = work(
    "CODE.MERGED.SUCCESS",
    CodeMerged,
    example={**_CHANGE, "mergeStrategy": "squash", "mergeSha": "b41d0aa", "mergedBy": "ben"},
)

EVENTS = (CODE_GENERATED, CODE_GENERATION_FAILED, CODE_REVIEW_REQUESTED, CODE_MERGED)
