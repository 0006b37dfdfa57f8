"""Declare what happens to plugins: installed, uninstalled, looked into."""

from __future__ import annotations

from penstock.catalog.development.fields import EntityId, Work, work
from penstock.catalog.platform.fields import Count, Fields, Name
from penstock.envelope.envelope import Severity


class _Plugin(Work):
    """What every event about a plugin may say."""

    plugin_name: Name | None = None
    """The plugin; it becomes a tag."""
    plugin_version: Name | None = None
    """Its version."""


class PluginInstalled(_Plugin):
    """A plugin was installed."""

    origin: Name | None = None
    """Where it came from."""
    permissions: list[str] | None = None
    """What it may do."""


class PluginUninstalled(_Plugin):
    """A plugin was removed."""

    reason: str | None = None
    """Why."""


class PluginDebugSnapshot(_Plugin):
    """A plugin's inner state was recorded, to find out what it does."""

    snapshot_id: EntityId | None = None
    """The snapshot."""
    trigger_name: Name | None = None
    """What asked for it; it becomes a tag."""
    size_bytes: Count | None = None
    """How large it is."""
    url: Name | None = None
    """Where it is kept."""
    state: Fields | None = None
    """The state itself, when it is small."""


_PLUGIN = {"pluginName": "lint-on-save", "pluginVersion": "1.4.0"}

PLUGIN_INSTALLED = work(
    "PLUGIN.INSTALLED.SUCCESS",
    PluginInstalled,
    tags=("pluginName",),
    example={**_PLUGIN, "origin": "registry.acme", "permissions": ["issues:read"]},
)
PLUGIN_UNINSTALLED = work(
    "PLUGIN.UNINSTALLED.SUCCESS",
    PluginUninstalled,
    tags=("pluginName",),
    example={**_PLUGIN, "reason": "replaced"},
)
PLUGIN_DEBUG_SNAPSHOT = work(
    "PLUGIN.DEBUG_SNAPSHOT.SUCCESS",
    PluginDebugSnapshot,
    severity=Severity.DEBUG,
    tags=("pluginName", "triggerName"),
    example={
        **_PLUGIN,
        "snapshotId": "s-1",
        "triggerName": "on-error",
        "sizeBytes": 2_048,
        "url": "blob:snapshots/s-1",
        "state": {"queue": 3},
    },
)

EVENTS = (PLUGIN_INSTALLED, PLUGIN_UNINSTALLED, PLUGIN_DEBUG_SNAPSHOT)
