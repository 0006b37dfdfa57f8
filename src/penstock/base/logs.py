"""Write logs: one JSON object per line on stderr, or coloured lines when stderr is a terminal.

    {"event": "batch stored", "level": "info", "part": "ingress", "timestamp": "…Z", "messages": 7}

Everything that logs goes through here: our structlog loggers, the standard library's and
uvicorn's. Tokens and passwords are taken out on the way, whoever logged them.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Collection, MutableMapping
from typing import Any, TextIO

import orjson
import structlog
from structlog.typing import EventDict, Processor

_CHATTY = ("httpx", "httpcore", "py4j", "asyncio", "urllib3", "websockets")
_SECRET = re.compile(
    r"""(?P<bearer>(?i:bearer)[ .]+)[^\s"',\\]{16,}"""
    r"""|pst_[\w-]{8,}"""
    r"""|(?P<user>\b[a-z][a-z0-9+]*://[^/\s:@]*:)[^@\s/]+(?=@)"""
)


def configure_logs(
    level: str, *, part: str, secrets: Collection[str] = (), stream: TextIO | None = None
) -> None:
    """Send every log line of this process to `stream` (stderr), marked with `part`.

    `secrets` are blotted out wherever they turn up, beside what looks like a secret by itself.
    """
    stream = stream or sys.stderr
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_shared(part),
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        _Formatter(
            secrets=secrets,
            foreign_pre_chain=[*_shared(part), structlog.stdlib.ExtraAdder(), _without_colour],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *(_for_terminal() if stream.isatty() else _for_machines()),
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    logging.captureWarnings(True)
    _route(level)


class _Formatter(structlog.stdlib.ProcessorFormatter):
    """The last hand on a line, so that no field, traceback or nested value slips past."""

    def __init__(self, *, secrets: Collection[str], **options: Any) -> None:
        super().__init__(**options)
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        line = without_secrets(super().format(record))
        for secret in self._secrets:
            line = line.replace(secret, "***")
        return line


def _route(level: str) -> None:
    """Make the loggers of libraries speak through ours, and the talkative ones only of trouble."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def _shared(part: str) -> list[Processor]:
    def with_part(_logger: Any, _method: str, event: EventDict) -> EventDict:
        event.setdefault("part", part)
        return event

    return [
        structlog.contextvars.merge_contextvars,
        with_part,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _for_machines() -> list[Processor]:
    return [
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(serializer=_to_json),
    ]


def _for_terminal() -> list[Processor]:
    return [structlog.dev.ConsoleRenderer()]


def _without_colour(_logger: Any, _method: str, event: EventDict) -> EventDict:
    event.pop("color_message", None)  # uvicorn's second copy of the message
    return event


def without_secrets(text: str) -> str:
    """The text with tokens and passwords blotted out."""
    return _SECRET.sub(lambda found: f"{found['bearer'] or found['user'] or ''}***", text)


def _to_json(event: MutableMapping[str, Any], **_options: Any) -> str:
    return orjson.dumps(event, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()
