"""Declare what happens between us and platforms that host code: a call, its end, a limit met."""

from __future__ import annotations

from penstock.catalog.development.fields import EntityId, Work, work
from penstock.catalog.platform.fields import Count, Instant, Name
from penstock.envelope.envelope import Severity


class _PlatformCall(Work):
    """What every event about a call of a platform may say."""

    operation: Name | None = None
    """What was asked of it."""
    method: Name | None = None
    """The HTTP method."""
    url: Name | None = None
    """The address that was called."""
    request_id: EntityId | None = None
    """The call; its end has the same."""


class PlatformApiCalled(_PlatformCall):
    """A platform was called."""


class PlatformSucceeded(_PlatformCall):
    """A platform did what it was asked."""

    status_code: Count | None = None
    """The status it answered with."""
    duration_ms: Count | None = None
    """How long it took."""


class PlatformFailed(_PlatformCall):
    """A platform did not do what it was asked."""

    error: str | None = None
    """What went wrong."""
    status_code: Count | None = None
    """The status it answered with."""
    duration_ms: Count | None = None
    """How long it took to fail."""
    is_retryable: bool | None = None
    """Whether trying again may help."""


class PlatformRateLimited(_PlatformCall):
    """A platform asks us to slow down."""

    limit: Count | None = None
    """How many calls it allows."""
    remaining: Count | None = None
    """How many are left."""
    resets_at: Instant | None = None
    """When there will be more."""
    retry_after_ms: Count | None = None
    """How long it asks us to wait."""


_CALL = {
    "platform": "github",
    "operation": "create-pull-request",
    "method": "POST",
    "url": "https://api.github.com/repos/acme/shop/pulls",
    "requestId": "r-2",
}

PLATFORM_API_CALLED = work("PLATFORM.API.CALL", PlatformApiCalled, example=_CALL)
PLATFORM_SUCCEEDED = work(
    "PLATFORM.SUCCESS",
    PlatformSucceeded,
    example={**_CALL, "statusCode": 201, "durationMs": 340},
)
PLATFORM_FAILED = work(
    "PLATFORM.FAILED",
    PlatformFailed,
    severity=Severity.ERROR,
    example={
        **_CALL,
        "error": "bad gateway",
        "statusCode": 502,
        "durationMs": 10_000,
        "isRetryable": True,
    },
)
PLATFORM_RATE_LIMITED = work(
    "PLATFORM.RATE_LIMITED",
    PlatformRateLimited,
    severity=Severity.WARNING,
    example={
        **_CALL,
        "limit": 5_000,
        "remaining": 0,
        "resetsAt": "2026-03-01T11:00:00.000Z",
        "retryAfterMs": 60_000,
    },
)

EVENTS = (PLATFORM_API_CALLED, PLATFORM_SUCCEEDED, PLATFORM_FAILED, PLATFORM_RATE_LIMITED)
