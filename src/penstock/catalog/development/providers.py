"""Declare what happens between us and providers of models: a call, its end, a quota used up."""

from __future__ import annotations

from penstock.catalog.development.fields import Amount, EntityId, Work, work
from penstock.catalog.platform.fields import Count, Instant, Name
from penstock.envelope.envelope import Severity


class _ProviderCall(Work):
    """What every event about a call of a provider may say."""

    model: Name | None = None
    """The model that was asked."""
    operation: Name | None = None
    """What was asked of it."""
    request_id: EntityId | None = None
    """The call; its end has the same."""


class ProviderApiCalled(_ProviderCall):
    """A provider was called."""

    prompt_length: Count | None = None
    """How many characters the prompt had."""
    estimated_tokens: Count | None = None
    """How many tokens that may be."""


class ProviderApiSucceeded(_ProviderCall):
    """A provider answered."""

    response_length: Count | None = None
    """How many characters the answer had."""
    actual_tokens: Count | None = None
    """How many tokens it took."""
    latency_ms: Count | None = None
    """How long the answer took."""
    cost_estimate_usd: Amount | None = None
    """What it cost, in US dollars."""


class ProviderApiFailed(_ProviderCall):
    """A call of a provider came to nothing."""

    error: str | None = None
    """What went wrong."""
    status_code: Count | None = None
    """The status it answered with."""
    latency_ms: Count | None = None
    """How long it took to fail."""
    is_retryable: bool | None = None
    """Whether trying again may help."""


class ProviderQuotaExceeded(_ProviderCall):
    """A provider answers no more, because the quota is used up."""

    quota: Name | None = None
    """Which quota."""
    limit: Count | None = None
    """How much it allows."""
    used: Count | None = None
    """How much was used."""
    resets_at: Instant | None = None
    """When there will be more."""


_CALL = {"provider": "anthropic", "model": "large", "operation": "complete", "requestId": "r-1"}

PROVIDER_API_CALLED = work(
    "PROVIDER.API.CALL",
    ProviderApiCalled,
    example={**_CALL, "promptLength": 9_120, "estimatedTokens": 2_400},
)
PROVIDER_API_SUCCEEDED = work(
    "PROVIDER.API.SUCCESS",
    ProviderApiSucceeded,
    example={
        **_CALL,
        "responseLength": 4_018,
        "actualTokens": 3_310,
        "latencyMs": 8_400,
        "costEstimateUsd": 0.021,
    },
)
PROVIDER_API_FAILED = work(
    "PROVIDER.API.FAILED",
    ProviderApiFailed,
    severity=Severity.ERROR,
    example={
        **_CALL,
        "error": "overloaded",
        "statusCode": 529,
        "latencyMs": 700,
        "isRetryable": True,
    },
)
PROVIDER_QUOTA_EXCEEDED = work(
    "PROVIDER.QUOTA.EXCEEDED",
    ProviderQuotaExceeded,
    severity=Severity.WARNING,
    example={
        **_CALL,
        "quota": "tokens-per-day",
        "limit": 1_000_000,
        "used": 1_000_000,
        "resetsAt": "2026-03-02T00:00:00.000Z",
    },
)

EVENTS = (
    PROVIDER_API_CALLED,
    PROVIDER_API_SUCCEEDED,
    PROVIDER_API_FAILED,
    PROVIDER_QUOTA_EXCEEDED,
)
