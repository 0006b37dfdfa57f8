"""Read every setting from one table, once, and refuse what is misspelt.

A setting is `PENSTOCK_<NAME>`; older names work as aliases. An unknown `PENSTOCK_*` variable stops
the start with the nearest known name, because a typo that is ignored is a setting that lies.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from penstock.base.errors import SettingsInvalid
from penstock.base.faults import expected

_PREFIX = "PENSTOCK_"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Settings(BaseModel):
    """Every setting with its default. Field docs are the reference (`penstock settings`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data_dir: Path = Field(
        Path(".penstock"), description="where the embedded database, the spool and tokens live"
    )
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8700, ge=0, le=65535, description="port to listen on")
    database_url: SecretStr | None = Field(
        None, description="an existing PostgreSQL to use instead of the embedded one"
    )
    admin_token: SecretStr | None = Field(
        None,
        min_length=24,
        description="the admin token to use; made and kept in the data directory when unset",
    )
    auth: Literal["on", "off"] = Field(
        "on", description="off is allowed on a loopback address only"
    )
    demo: bool = Field(True, description="publish demo events while `penstock up` runs")
    events_mode: Literal["spool", "inline"] = Field(
        "spool", description="inline commits in the request and needs no ingress process"
    )
    queue_name: str = Field(
        "apphub_event_ingress_queue",
        pattern=r"^[A-Za-z0-9_-]{1,100}$",
        description="name of the queue; the spool keeps it in a folder of that name",
    )
    allow_inline_mode: bool = Field(False, description="lets REDIS_URL=inline select inline mode")
    registry_mode: Literal["strict", "open"] = Field(
        "strict", description="open accepts unregistered types and marks them"
    )
    ingress_concurrency: int = Field(
        min(5, os.cpu_count() or 1),
        ge=1,
        le=64,
        description="how many partitions the ingress judges and stores at once",
    )
    ingress_interval_ms: int = Field(
        50, ge=0, le=60_000, description="pause between micro-batches when the queue is quiet"
    )
    segment_bytes: int = Field(
        1_000_000, ge=10_000, le=64_000_000, description="a spool segment is sealed at this size"
    )
    segment_age_ms: int = Field(
        60, ge=5, le=10_000, description="a spool segment is sealed at this age"
    )
    spool_bytes_max: int = Field(
        20_000_000_000,
        ge=1_000_000,
        description="publishing answers 507 when the spool holds this much",
    )
    body_bytes_max: int = Field(
        8_000_000, ge=1_000, description="the largest HTTP body, a batch included"
    )
    batch_events_max: int = Field(5_000, ge=1, description="the most events in one HTTP batch")
    query_timeout_ms: int = Field(
        2_000, ge=50, le=60_000, description="a read that takes longer is stopped"
    )
    allowed_hosts: str = Field(
        "", description="comma-separated Host names to answer to beside the loopback ones"
    )
    allowed_origins: str = Field(
        "", description="comma-separated browser origins to accept beside our own"
    )
    stream_buffer_events: int = Field(
        256, ge=1, description="events kept for a slow live client before it is told `lagged`"
    )
    spark_memory: str = Field("1g", pattern=r"^\d+[mg]$", description="heap of the Spark driver")
    spark_packages: str = Field(
        "", description="Maven coordinates of connectors, as spark.jars.packages"
    )
    spark_jars: str = Field("", description="paths of connector jars, as spark.jars")
    retention_days: int | None = Field(
        None, ge=1, description="events older than this leave the log once an archive has them"
    )
    event_source_rate_limits: str = Field(
        "", description="JSON list of limits per source; events beyond them wait to be judged"
    )
    trigger_error_threshold: int = Field(
        5, ge=1, description="so many failed launches within the window pause a trigger"
    )
    trigger_error_window_ms: int = Field(
        300_000, ge=1, description="how long a failed launch counts against its trigger"
    )
    trigger_pause_ms: int = Field(
        300_000, ge=1, description="how long a trigger that failed too often is paused"
    )
    jobs: str = Field(
        "", description="comma-separated modules or .py files whose handlers workers may run"
    )
    worker_concurrency: int = Field(
        8, ge=1, le=256, description="how many steps of workflows one worker runs at once"
    )
    fanout_items_max: int = Field(
        100, ge=1, le=10_000, description="the most items that one fan-out step may have"
    )
    fanout_concurrency_max: int = Field(
        10, ge=1, le=1_000, description="the most items of a fan-out step that run at once"
    )
    allowed_outbound: str = Field(
        "",
        description="comma-separated networks that steps and alerts may call beside public ones",
    )
    alert_webhook_url: str | None = Field(
        None, description="where alerts are posted; unset, they are logged only"
    )
    alert_webhook_token: SecretStr | None = Field(
        None, description="sent with alerts as a bearer token; one that starts with whsec_ signs"
    )
    failure_alert_threshold: int = Field(
        3, ge=1, description="so many failed runs of a workflow within the window raise an alert"
    )
    failure_alert_window_minutes: int = Field(
        15, ge=1, le=1_440, description="the window of that; one alert in each"
    )
    retry_backlog_alert_threshold: int = Field(
        25, ge=1, description="so many waiting retries of a kind, or a late one, raise an alert"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="least severe line that is logged"
    )
    url: str | None = Field(None, description="server that the command line and the SDK talk to")
    token: SecretStr | None = Field(
        None, description="token that the command line and the SDK send"
    )

    @property
    def loopback(self) -> bool:
        """Whether the listening address can be reached from this machine only."""
        return self.host in _LOOPBACK

    @property
    def hosts_answered(self) -> str:
        """The Host names we answer to beside the loopback ones: the listed ones and our own."""
        own = "" if self.loopback or self.host in ("0.0.0.0", "::") else self.host  # noqa: S104
        return ",".join(filter(None, (self.allowed_hosts, own)))

    @property
    def spool_dir(self) -> Path:
        return self.data_dir / "spool" / self.queue_name

    @property
    def base_url(self) -> str:
        """Where the server of these settings answers."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.url or f"http://{host}:{self.port}"


ALIASES: Mapping[str, str] = {
    "APPHUB_EVENT_QUEUE_NAME": "queue_name",
    "APPHUB_EVENTS_MODE": "events_mode",
    "APPHUB_ALLOW_INLINE_MODE": "allow_inline_mode",
    "EVENT_INGRESS_CONCURRENCY": "ingress_concurrency",
    "EVENT_SOURCE_RATE_LIMITS": "event_source_rate_limits",
    "EVENT_TRIGGER_ERROR_THRESHOLD": "trigger_error_threshold",
    "EVENT_TRIGGER_ERROR_WINDOW_MS": "trigger_error_window_ms",
    "EVENT_TRIGGER_PAUSE_MS": "trigger_pause_ms",
    "WORKFLOW_ALERT_WEBHOOK_URL": "alert_webhook_url",
    "WORKFLOW_ALERT_WEBHOOK_TOKEN": "alert_webhook_token",
    "WORKFLOW_FAILURE_ALERT_THRESHOLD": "failure_alert_threshold",
    "WORKFLOW_FAILURE_ALERT_WINDOW_MINUTES": "failure_alert_window_minutes",
    "RETRY_BACKLOG_ALERT_THRESHOLD": "retry_backlog_alert_threshold",
}
# Read elsewhere, so that they are not taken for typos here.
_OTHER_READERS = frozenset({"PENSTOCK_PYTHON"})


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Settings from environment variables; SettingsInvalid names the first thing wrong."""
    given: dict[str, str] = {}
    for alias, name in ALIASES.items():
        if environ.get(alias):
            given[name] = environ[alias]
    for variable, value in environ.items():
        if variable.startswith(_PREFIX) and variable not in _OTHER_READERS:
            given[_field_of(variable)] = value
    if given.get("events_mode") in ("redis", "queue"):
        given["events_mode"] = "spool"
    given = {name: value for name, value in given.items() if value != ""}
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        raise SettingsInvalid(_sentence(error.errors(include_url=False)[0])) from None
    return _checked(settings, environ)


def _sentence(fault: ErrorDetails) -> str:
    """The first fault in our words; a secret is never repeated, only measured."""
    name = str(fault["loc"][0]) if fault["loc"] else "?"
    value = str(fault["input"])
    is_secret = "Secret" in str(Settings.model_fields[name].annotation)
    found = f"{len(value)} characters" if is_secret else repr(value[:80])
    return f"{_PREFIX}{name.upper()}: {expected(fault)}, found {found}"


def _field_of(variable: str) -> str:
    name = variable.removeprefix(_PREFIX).lower()
    if name in Settings.model_fields:
        return name
    near = difflib.get_close_matches(name, Settings.model_fields, n=1)
    hint = f" Did you mean {_PREFIX}{near[0].upper()}?" if near else ""
    raise SettingsInvalid(f"{variable} is not a setting.{hint}")


def _checked(settings: Settings, environ: Mapping[str, str]) -> Settings:
    if settings.auth == "off" and not settings.loopback:
        raise SettingsInvalid(
            f"PENSTOCK_AUTH=off needs a loopback PENSTOCK_HOST, found {settings.host}",
            remedy="Keep authentication on, or listen on 127.0.0.1.",
        )
    if environ.get("REDIS_URL") == "inline" and settings.events_mode != "inline":
        if not settings.allow_inline_mode:
            raise SettingsInvalid(
                "REDIS_URL=inline needs APPHUB_ALLOW_INLINE_MODE=true",
                remedy="Set APPHUB_ALLOW_INLINE_MODE=true, or unset REDIS_URL.",
            )
        return settings.model_copy(update={"events_mode": "inline"})
    return settings
