"""Name the kinds of field that the platform's payloads share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AwareDatetime, Field, JsonValue

Name: TypeAlias = Annotated[str, Field(min_length=1)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Instant: TypeAlias = AwareDatetime
Fields: TypeAlias = dict[str, JsonValue]
