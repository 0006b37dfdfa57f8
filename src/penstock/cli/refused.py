"""Hold what a server said no to, in its own code and words."""

from __future__ import annotations

from penstock.base.errors import Fault


class Refused(Exception):
    """A server that said no, or nothing at all: its code, its words and its remedy."""

    def __init__(
        self,
        code: str,
        detail: str,
        remedy: str,
        *,
        faults: tuple[Fault, ...] = (),
        dead_letter_id: str | None = None,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.remedy = remedy
        self.faults = faults
        self.dead_letter_id = dead_letter_id
        self.status = status
        self.retry_after_s = retry_after_s

    @property
    def passes(self) -> bool:
        """Whether the same request may well be answered in a moment."""
        return self.status is None or self.status in (429, 502, 503, 504, 507)
