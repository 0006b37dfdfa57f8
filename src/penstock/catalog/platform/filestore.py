"""Declare what happens to files: commands, nodes, and drift from what the backend holds.

A node is a file or a directory on one mount, found by its path. The typed reading (`derived`) of
every filestore event is its payload as it is.
"""

from __future__ import annotations

from typing import Literal

from penstock.catalog.platform.fields import Count, Fields, Instant, Name
from penstock.envelope.envelope import Severity
from penstock.registry.declare import EventType, P, Payload

_SOURCES = ("filestore.service", "filestore.api")

Kind = Literal["file", "directory", "unknown"]
State = Literal["active", "inconsistent", "missing", "deleted", "unknown"]
Reason = Literal["drift", "audit", "manual"]


class _Located(Payload):
    """Where a node is."""

    backend_mount_id: Count
    """The mount it is on."""
    node_id: Count | None = None
    """The node, once it is known."""
    path: Name
    """Its path on that mount."""


class _Described(_Located):
    """What is known about a node."""

    kind: Kind | None = None
    """What it is."""
    state: State | None = None
    """How it is."""
    parent_id: Count | None = None
    """The directory that holds it."""
    version: Count | None = None
    """It goes up with every change."""
    size_bytes: Count | None = None
    """How large it is."""
    checksum: str | None = None
    """What the backend says its content hashes to."""
    content_hash: str | None = None
    """What we say its content hashes to."""
    metadata: Fields | None = None
    """What people noted on it."""
    observed_at: Instant | None = None
    """When this was seen."""


class _Commanded(_Described):
    """A node that a command changed."""

    journal_id: Count | None = None
    """The journal entry of the command."""
    command: str | None = None
    """The command."""
    idempotency_key: str | None = None
    """The key under which the command counts once."""
    principal: str | None = None
    """Who gave it."""


class NodeCreated(_Commanded):
    """A file or directory came into being."""


class NodeUpdated(_Commanded):
    """A node's content, place or metadata changed."""


class NodeDeleted(_Commanded):
    """A node was deleted."""


class NodeUploaded(_Commanded):
    """A file's content was uploaded."""


class NodeMoved(_Commanded):
    """A node has another path."""


class NodeCopied(_Commanded):
    """A node was copied to another path."""


class _Reconciled(_Described):
    """A node that was compared with its backend."""

    consistency_state: Literal["active", "inconsistent", "missing"] | None = None
    """What the comparison showed."""
    consistency_checked_at: Instant | None = None
    """When it was compared."""
    last_reconciled_at: Instant | None = None
    """When it last agreed."""
    previous_state: State | None = None
    """How it was before."""
    reason: Reason | None = None
    """Why it was compared."""


class NodeReconciled(_Reconciled):
    """A node was compared with its backend and brought to agree with it."""


class NodeMissing(_Reconciled):
    """A node is in the books but not on its backend."""


class NodeDownloaded(_Located):
    """A file was read by somebody."""

    size_bytes: Count | None = None
    """How large it is."""
    checksum: str | None = None
    """What the backend says its content hashes to."""
    content_hash: str | None = None
    """What we say its content hashes to."""
    principal: str | None = None
    """Who read it."""
    mode: Literal["stream", "presign"] | None = None
    """Through us, or by an address handed out."""
    range: str | None = None
    """The part that was asked for."""
    observed_at: Instant | None = None
    """When it was read."""


class CommandCompleted(Payload):
    """A command was carried out and its result is in the journal."""

    journal_id: Count | None = None
    """The journal entry of the command."""
    command: Name
    """The command."""
    backend_mount_id: Count | None = None
    """The mount it worked on."""
    node_id: Count | None = None
    """The node it worked on."""
    path: str | None = None
    """Its path on that mount."""
    idempotency_key: str | None = None
    """The key under which the command counts once."""
    principal: str | None = None
    """Who gave it."""
    result: Fields | None = None
    """What came of it."""
    node: Fields | None = None
    """The node afterwards."""
    observed_at: Instant | None = None
    """When it was done."""


class DriftDetected(_Located):
    """A backend holds something else than the books say."""

    detected_at: Instant | None = None
    """When it was noticed."""
    reason: str | None = None
    """What differs."""
    reporter: str | None = None
    """Who noticed."""
    metadata: Fields | None = None
    """What else is known."""


_AT = "2026-03-01T10:30:00.000Z"
_NODE = {"backendMountId": 1, "nodeId": 4711, "path": "reports/march.csv"}
_FILE = {**_NODE, "kind": "file", "state": "active", "version": 3, "sizeBytes": 20_480}
_BY = {"journalId": 92, "principal": "ana", "observedAt": _AT}
_CHECKED = {"consistencyCheckedAt": _AT, "previousState": "active", "reason": "audit"}


def _event(
    name: str,
    payload: type[P],
    example: dict[str, object],
    severity: Severity | None = None,
) -> EventType[P]:
    return EventType(
        f"filestore.{name}",
        payload,
        sources=_SOURCES,
        severity=severity,
        derived_requires=(),
        example=example,
    )


EVENTS = (
    _event(
        "command.completed",
        CommandCompleted,
        {**_NODE, **_BY, "command": "uploadFile", "result": {"version": 3}},
    ),
    _event("node.created", NodeCreated, {**_FILE, **_BY, "command": "uploadFile"}),
    _event("node.updated", NodeUpdated, {**_FILE, **_BY, "command": "writeFile"}),
    _event("node.deleted", NodeDeleted, {**_FILE, **_BY, "command": "deleteNode"}),
    _event("node.uploaded", NodeUploaded, {**_FILE, **_BY, "command": "uploadFile"}),
    _event("node.moved", NodeMoved, {**_FILE, **_BY, "command": "moveNode"}),
    _event("node.copied", NodeCopied, {**_FILE, **_BY, "command": "copyNode"}),
    _event("node.reconciled", NodeReconciled, {**_FILE, **_CHECKED, "consistencyState": "active"}),
    _event(
        "node.missing",
        NodeMissing,
        {**_FILE, **_CHECKED, "state": "missing", "consistencyState": "missing"},
        Severity.WARNING,
    ),
    _event(
        "node.downloaded",
        NodeDownloaded,
        {**_NODE, "principal": "ana", "mode": "stream", "range": None, "observedAt": _AT},
    ),
    _event(
        "drift.detected",
        DriftDetected,
        {**_NODE, "detectedAt": _AT, "reason": "size differs", "reporter": "watcher"},
        Severity.WARNING,
    ),
)

(
    COMMAND_COMPLETED,
    NODE_CREATED,
    NODE_UPDATED,
    NODE_DELETED,
    NODE_UPLOADED,
    NODE_MOVED,
    NODE_COPIED,
    NODE_RECONCILED,
    NODE_MISSING,
    NODE_DOWNLOADED,
    DRIFT_DETECTED,
) = EVENTS
