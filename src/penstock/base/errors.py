"""Say what went wrong, in a code that never changes and a remedy that helps.

    PenstockError
    ├── SettingsInvalid       a setting is unknown, or its value does not fit
    ├── NotInProfile          bytes outside the strict JSON profile
    ├── EventRefused          an event that may not be published, and why
    ├── QueueUnavailable      nothing was stored; trying again is safe
    ├── StoreUnavailable      PostgreSQL does not answer
    ├── QueryInvalid          a filter, cursor or jsonPath that cannot be run
    ├── QueryTooSlow          a read that passed its time limit
    ├── NotFound              nothing by that name
    ├── SchemaInvalid         a schema that does not compile or is unsafe
    ├── SchemaConflict        another schema under a published version
    │   └── SchemaBreaking    a new version that breaks the one before it
    ├── AccessDenied          no token, a wrong one, or one without the scope
    ├── ConditionInvalid      an append condition or a decision's query that cannot be checked
    ├── AppendConflict        what an append asked not to exist does
    ├── ReducerFailed         somebody's reducer raised, or gave no bearable state
    ├── AuditDamaged          what was sealed is not what is there
    ├── NotSealed             an event that is stored but not sealed yet
    ├── RetentionRefused      events that must not leave the log, and why
    └── SetupIncomplete       the machine lacks something; `penstock doctor` says what

The same `code` stands in the CLI, the problem+json body, the log line and docs/reference/errors.md.
A bad *event* inside the pipeline is a value (`ingress.verdict.Rejected`), never one of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong at one place of a document: a JSON Pointer and a sentence."""

    pointer: str
    detail: str


class PenstockError(Exception):
    """Anything Penstock refuses or cannot do, with a stable code and a remedy."""

    code: ClassVar[str] = "internal"
    remedy: str = "Look at the log of this process; the line carries the same code."
    faults: tuple[Fault, ...] = ()

    def __init__(
        self, detail: str, *, remedy: str | None = None, faults: tuple[Fault, ...] = ()
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        if remedy is not None:
            self.remedy = remedy
        self.faults = faults


class SettingsInvalid(PenstockError):
    """A setting is unknown, or its value does not fit."""

    code = "settings_invalid"
    remedy = "Run `penstock settings` to see every setting with its meaning and default."


class NotInProfile(PenstockError):
    """The bytes are not in the strict JSON profile; `reason` is the rejection reason."""

    code = "not_in_profile"
    remedy = "Send UTF-8 JSON within the limits listed in docs/events.md."

    def __init__(self, reason: str, detail: str, *, pointer: str = "") -> None:
        super().__init__(detail, faults=(Fault(pointer, detail),))
        self.reason = reason
        self.pointer = pointer


class EventRefused(PenstockError):
    """An event that may not be published. Nothing was stored but its dead letter."""

    code = "event_refused"
    remedy = "Correct the event as `errors` says and publish it again."

    def __init__(
        self,
        detail: str,
        *,
        reason: str,
        remedy: str | None = None,
        faults: tuple[Fault, ...] = (),
        dead_letter_id: str | None = None,
    ) -> None:
        super().__init__(detail, remedy=remedy, faults=faults)
        self.reason = reason
        self.dead_letter_id = dead_letter_id


class QueueUnavailable(PenstockError):
    """The queue could not make the event durable. Nothing was stored; try again."""

    code = "queue_unavailable"
    remedy = "Nothing was stored. Publish the same event again, with the same id, after a pause."

    def __init__(self, detail: str, *, disk_full: bool = False, retry_after_s: int = 2) -> None:
        super().__init__(detail)
        self.disk_full = disk_full
        self.retry_after_s = retry_after_s


class StoreUnavailable(PenstockError):
    """PostgreSQL does not answer."""

    code = "store_unavailable"
    remedy = (
        "Publishing still works; reading resumes when PostgreSQL answers. See `penstock doctor`."
    )


class QueryInvalid(PenstockError):
    """A filter, cursor or jsonPath that cannot be run."""

    code = "query_invalid"
    remedy = "Correct the parameter named in `errors`; docs/reference/http.md lists them all."

    def __init__(self, detail: str, *, parameter: str, remedy: str | None = None) -> None:
        super().__init__(detail, remedy=remedy, faults=(Fault(parameter, detail),))
        self.parameter = parameter


class QueryTooSlow(PenstockError):
    """A read that passed its time limit and was stopped."""

    code = "query_too_slow"
    remedy = "Narrow it: add type, source, a tag or a time range beside the slow filter."


class NotFound(PenstockError):
    """Nothing by that name."""

    code = "not_found"
    remedy = "Check the id; what belongs to another tenant does not exist for this token."


class SchemaInvalid(PenstockError):
    """A schema that does not compile, or that could take for ever to check."""

    code = "schema_invalid"
    remedy = "Send a JSON Schema (2020-12) object that compiles; `errors` says where it does not."


class SchemaConflict(PenstockError):
    """Another schema is already published under this version."""

    code = "schema_conflict"
    remedy = "Register the changed schema under a new version; a published one never changes."


class SchemaBreaking(SchemaConflict):
    """A new version does not keep what the version before it promised."""

    code = "schema_breaking"
    remedy = (
        "Keep what was promised, or send `override: true` with a `reason`; "
        "`penstock registry check` shows what would break."
    )


class AccessDenied(PenstockError):
    """No token, a wrong one, or one without the scope."""

    code = "access_denied"
    remedy = "Send `Authorization: Bearer <token>`; `penstock token create` makes one."

    def __init__(self, detail: str, *, known: bool = False, remedy: str | None = None) -> None:
        super().__init__(detail, remedy=remedy)
        self.known = known  # the token is good but lacks the scope: 403, not 401


class SetupIncomplete(PenstockError):
    """The machine lacks something the product needs."""

    code = "setup_incomplete"
    remedy = "Run `penstock doctor`; it names what is missing and the command that installs it."


class ReducerFailed(PenstockError):
    """A reducer raised, or gave something that is no state; the detail names the event."""

    code = "reducer_failed"
    remedy = "Correct the reducer and raise its version, or name another one with `reducer=`."


class AuditDamaged(PenstockError):
    """What was sealed is not what is there."""

    code = "audit_damaged"
    remedy = (
        "Run `penstock audit verify`: it names the first damaged position. Stop writing, keep the "
        "checkpoints, and compare with a backup."
    )


class NotSealed(PenstockError):
    """An event that is stored but not sealed yet; it has no proof."""

    code = "not_sealed"
    remedy = "Ask again in a second: `penstock worker` seals what was stored."


class RetentionRefused(PenstockError):
    """Events that must not leave the log."""

    code = "retention_refused"
    remedy = "Nothing was moved. Set up an archive, or unset PENSTOCK_RETENTION_DAYS."


class ConditionInvalid(PenstockError):
    """An append condition, or the query of a decision, that cannot be checked."""

    code = "condition_invalid"
    remedy = "Name exact types, tags or both in every item, and positions in decimal digits."

    def __init__(self, detail: str, *, pointer: str, remedy: str | None = None) -> None:
        super().__init__(detail, remedy=remedy, faults=(Fault(pointer, detail),))
        self.pointer = pointer


class AppendConflict(PenstockError):
    """Events that the append's condition forbids are in the log. Nothing was stored."""

    code = "append_conflict"
    remedy = "Read again, decide again, append again with the new `after`."
    _EXISTS = "It is done already: nothing to append, unless under another name."

    def __init__(self, positions: tuple[int, ...], *, after: int, exists: bool = False) -> None:
        where = "anywhere" if exists else f"after position {after}"
        super().__init__(
            f"expected no matching event {where}, found {', '.join(map(str, positions))}",
            remedy=self._EXISTS if exists else None,
        )
        self.positions = positions  # the first ones, in order
        self.exists = exists  # `failIfExists` forbids them: deciding again does not help
