"""Prove what the log holds: a signed checkpoint, and for each event that it is under it.

A proof needs nothing else of us: `penstock audit proof` checks it with the public key alone.
"""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.access.token import Caller
from penstock.api.asking import Asked
from penstock.api.context import house_of
from penstock.api.reply import reply
from penstock.base.clock import format_instant
from penstock.base.errors import NotFound
from penstock.envelope.envelope import JsonObject
from penstock.store.audit.proof import consistency_wire, proof_wire


async def show_proof(request: Request, caller: Caller) -> Response:
    """The proof that one event is in the log, under the newest checkpoint."""
    event_id = request.path_params["event_id"]
    audit = house_of(request).audit
    proof = await run_in_threadpool(audit.proof, caller.tenant_id, event_id)
    if proof is None:
        raise NotFound(f"expected an event, found none with id {event_id[:128]!r}")
    return reply({"data": proof_wire(proof)})


async def show_checkpoint(request: Request, _caller: Caller) -> Response:
    """The newest signed checkpoint; with `since`, the proof that an older log became this one."""
    audit = house_of(request).audit
    since = Asked(request, "since").exactly("since")
    if since is not None:
        found = await run_in_threadpool(audit.consistency, since)
        return reply({"data": consistency_wire(found)})
    kept = await run_in_threadpool(audit.checkpoint)
    data: JsonObject = {
        "checkpoint": kept.note,
        "origin": kept.checkpoint.origin,
        "size": kept.checkpoint.size,
        "root": kept.checkpoint.root.hex(),
        "signedAt": format_instant(kept.checkpoint.at),
    }
    return reply({"data": data})
