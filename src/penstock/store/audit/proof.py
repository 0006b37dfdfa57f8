"""Hold a proof, write it for whoever asked, and check it as they would.

    body ── rows.leaf ─▶ + position, receivedAt ── entry ─▶ leaf ── path ─▶ root = the signed one?

A reader who has the public key, the event's body and these few hashes needs nothing else of us.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from penstock.base.errors import AuditDamaged
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.ingress.rows import leaf
from penstock.store.audit.checkpoint import Checkpoint, VerifierKey, read_note
from penstock.store.audit.entry import Row, entry_hash, read_row
from penstock.store.audit.merkle import root_by_inclusion


@dataclass(frozen=True, slots=True)
class Proof:
    """That one event is in the log of a checkpoint."""

    checkpoint: str
    size: int
    row: Row
    path: list[bytes]


@dataclass(frozen=True, slots=True)
class Consistency:
    """That the log of an earlier size became the log of a checkpoint."""

    checkpoint: str
    before: int
    path: list[bytes]


def proven(note: str, checkpoint: Checkpoint, line: bytes, path: list[bytes]) -> Proof:
    """The proof for a stored row; AuditDamaged when it is not what was sealed."""
    try:
        row = read_row(line)
    except ValueError as error:
        raise AuditDamaged(f"a stored row is none of ours: {error}") from error
    found = entry_hash(row.position, row.received_us, row.leaf)
    if root_by_inclusion(found, row.position - 1, checkpoint.size, path) != checkpoint.root:
        raise AuditDamaged(f"the event at position {row.position} is not what was sealed")
    return Proof(note, checkpoint.size, row, path)


def proof_wire(proof: Proof) -> JsonObject:
    """A proof with the event it is about, as the API answers it."""
    row = proof.row
    path: list[JsonValue] = [step.hex() for step in proof.path]
    return {
        "position": str(row.position),
        "receivedAtMicros": row.received_us,
        "body": row.body.decode(),
        "leafHash": row.leaf.hex(),
        "entryHash": entry_hash(row.position, row.received_us, row.leaf).hex(),
        "leafIndex": row.position - 1,
        "treeSize": proof.size,
        "path": path,
        "checkpoint": proof.checkpoint,
    }


def consistency_wire(found: Consistency) -> JsonObject:
    """A consistency proof as the API answers it."""
    path: list[JsonValue] = [step.hex() for step in found.path]
    return {"checkpoint": found.checkpoint, "since": found.before, "path": path}


def check_proof(wire: JsonObject, key: VerifierKey) -> Checkpoint:
    """The checkpoint that the proof leads to; ValueError when it does not lead there."""
    try:
        body, path = cast("str", wire["body"]), cast("list[str]", wire["path"])
        position, micros = int(cast("str", wire["position"])), cast("int", wire["receivedAtMicros"])
        steps = [bytes.fromhex(step) for step in path]
        checkpoint = read_note(cast("str", wire["checkpoint"]), key)
        found = entry_hash(position, micros, leaf(body.encode()))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("expected a proof, found something else") from error
    root = root_by_inclusion(found, position - 1, checkpoint.size, steps)
    if root != checkpoint.root:
        raise ValueError("expected the path to lead to the signed root, found another root")
    return checkpoint
