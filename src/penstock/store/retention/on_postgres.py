"""Look which events a policy lets leave, and move them only where that is safe."""

from __future__ import annotations

from penstock.base.clock import Clock, SystemClock
from penstock.base.errors import RetentionRefused
from penstock.base.on_postgres import Pool, answering
from penstock.sql import query
from penstock.store.retention.archive import Archive, NoArchive, WayOut
from penstock.store.retention.policy import Decision, Move, Policy, Stay, decide


class Retention:
    """The retention of one store."""

    def __init__(
        self,
        pool: Pool,
        policy: Policy,
        *,
        archive: Archive | None = None,
        way_out: WayOut | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._pool = pool
        self._policy = policy
        self._archive = archive or NoArchive()
        self._way_out = way_out
        self._clock = clock or SystemClock()

    def plan(self) -> Decision:
        """What the policy comes to now; nothing is moved."""
        cutoff = self._policy.cutoff(self._clock.now())
        if cutoff is None:
            return decide(self._policy, old_up_to=0, sealed_up_to=0, archived=False)
        with answering(), self._pool.connection() as connection:
            row = connection.execute(query("retention", "old"), {"cutoff": cutoff}).fetchone()
        old_up_to, sealed_up_to = row or (0, 0)
        return decide(
            self._policy,
            old_up_to=old_up_to,
            sealed_up_to=sealed_up_to,
            archived=old_up_to > 0 and self._archive.has(old_up_to),
        )

    def move(self) -> int:
        """Move what may leave; how many events left. RetentionRefused when some should but may not.

        The archive is asked again right before: what it had a moment ago, it must still have.
        """
        plan = self.plan()
        if isinstance(plan, Stay):
            if plan.is_refused:
                raise RetentionRefused(plan.reason)
            return 0
        if self._way_out is None:
            raise RetentionRefused(
                f"expected a way for positions up to {plan.up_to} out of an append-only table, "
                "found none: rows are never deleted"
            )
        return self._release(plan, self._way_out)

    def _release(self, plan: Move, way_out: WayOut) -> int:
        if not self._archive.has(plan.up_to):
            raise RetentionRefused(f"the archive no longer has every event up to {plan.up_to}")
        return way_out.release(plan.up_to)
