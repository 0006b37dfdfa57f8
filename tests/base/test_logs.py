"""Hold the log to its promises: one JSON object per line, levels kept, secrets gone."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator

import pytest
import structlog

from penstock.base.logs import configure_logs, without_secrets


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object_with_time_level_event_part_and_fields() -> None:
    stream = io.StringIO()
    configure_logs("info", part="ingress", stream=stream)

    structlog.get_logger().info("batch stored", messages=7, event_id="e-1")

    (line,) = lines(stream)
    assert line["event"] == "batch stored"
    assert line["level"] == "info"
    assert line["part"] == "ingress"
    assert line["messages"] == 7
    assert line["event_id"] == "e-1"
    assert str(line["timestamp"]).endswith("Z")


def test_fields_bound_to_the_context_are_on_every_line() -> None:
    stream = io.StringIO()
    configure_logs("info", part="serve", stream=stream)

    with structlog.contextvars.bound_contextvars(correlation_id="req-1"):
        structlog.get_logger().info("inside")
        logging.getLogger("some.library").warning("foreign")
    structlog.get_logger().info("outside")

    assert [line.get("correlation_id") for line in lines(stream)] == ["req-1", "req-1", None]


def test_lines_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    configure_logs("warning", part="serve", stream=stream)

    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("loud")

    assert [line["event"] for line in lines(stream)] == ["loud"]


def test_the_standard_library_and_uvicorn_speak_through_the_same_lines() -> None:
    stream = io.StringIO()
    configure_logs("info", part="serve", stream=stream)

    logging.getLogger("uvicorn.error").info(
        "Started server process [%d]", 7, extra={"color_message": "\x1b[1m"}
    )

    (line,) = lines(stream)
    assert line["event"] == "Started server process [7]"
    assert line["part"] == "serve"
    assert "color_message" not in line


def test_an_exception_stays_on_its_one_line() -> None:
    stream = io.StringIO()
    configure_logs("info", part="serve", stream=stream)

    try:
        raise ValueError("expected one, found two")
    except ValueError:
        structlog.get_logger().exception("failed")

    (line,) = lines(stream)
    assert "expected one, found two" in str(line["exception"])


def test_a_python_warning_is_a_log_line() -> None:
    stream = io.StringIO()
    configure_logs("info", part="serve", stream=stream)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old ways", stacklevel=1)
        logging.captureWarnings(False)

    assert "old ways" in str(lines(stream)[0]["event"])


def test_a_value_json_does_not_know_is_written_as_it_reads() -> None:
    stream = io.StringIO()
    configure_logs("info", part="serve", stream=stream)

    structlog.get_logger().info("odd", value={1: object})

    assert lines(stream)[0]["value"] == {"1": "<class 'object'>"}


def test_a_terminal_gets_readable_lines_instead_of_json() -> None:
    stream = Terminal()
    configure_logs("info", part="serve", stream=stream)

    structlog.get_logger().info("batch stored", messages=7)

    assert "batch stored" in stream.getvalue()
    with pytest.raises(json.JSONDecodeError):
        json.loads(stream.getvalue())


def test_secrets_never_reach_the_log_wherever_they_hide() -> None:
    stream = io.StringIO()
    configure_logs("info", part="serve", stream=stream)
    token = "pst_" + "s3cret" * 7

    structlog.get_logger().info(f"got {token}", nested={"deep": [token]}, header=f"Bearer {token}")
    logging.getLogger("library").warning("dsn postgresql://ann:hunter2@db/x %s", token)
    try:
        raise ValueError(token)
    except ValueError:
        structlog.get_logger().exception("failed")

    assert "s3cret" not in stream.getvalue()
    assert "hunter2" not in stream.getvalue()
    assert len(lines(stream)) == 3


def test_a_secret_of_the_settings_is_blotted_out_though_it_looks_like_a_word() -> None:
    stream = io.StringIO()
    configure_logs("info", part="serve", secrets=["open-sesame"], stream=stream)

    structlog.get_logger().info("heard open-sesame", said="open-sesame!")

    assert "sesame" not in stream.getvalue()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Authorization: Bearer abcdefgh.ijklmnop", "Authorization: Bearer ***"),
        ("expected a bearer token, found none", "expected a bearer token, found none"),
        ("protocol bearer.pst_0123456789", "protocol bearer.***"),
        ("postgresql://u:p%40ss@h:5432/d", "postgresql://u:***@h:5432/d"),
        ("http://127.0.0.1:8700/ is up", "http://127.0.0.1:8700/ is up"),
        ("postgresql://postgres:@/postgres?host=/x", "postgresql://postgres:@/postgres?host=/x"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_only_the_secret_is_blotted_out(text: str, written: str) -> None:
    assert without_secrets(text) == written
