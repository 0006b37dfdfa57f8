"""A report is one file that shows what happened, whatever the events say."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.store.timetravel.diff import changes_between
from penstock.store.timetravel.page import SCRIPT, STYLE
from penstock.store.timetravel.report import write_report
from penstock.store.timetravel.story import Scene, Story

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</pre></details></article><iframe src='javascript:alert(1)'>",
    "<!--", "-->", "]]>", "<![CDATA[", "&lt;script&gt;", "&#60;script&#62;", "javascript:alert(1)",
    "<a href='javascript:alert(1)'>x</a>", "<base href='//evil'>", "<meta http-equiv=refresh>",
    "\u202e<b>", "\x00<script>", "<\x0bscript>", "\ufeff<script>", "${alert(1)}",
    "{{constructor.constructor('alert(1)')()}}", "<style>@import '//evil'</style>",
    "<link rel=stylesheet href=//evil>", "<form action=//evil><button>", "<textarea>",
    "<plaintext>",
)  # fmt: skip
TAGS = {
    "html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "p", "code", "kbd",
    "svg", "line", "a", "circle", "details", "summary", "pre", "main", "nav", "ol", "li", "strong",
    "br", "small", "div", "article", "table", "tr", "th", "td", "del", "ins", "script",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "data-focus", "role", "aria-label", "x1",
    "y1", "x2", "y2", "href", "class", "cx", "cy", "r", "id",
}  # fmt: skip


class Page(HTMLParser):
    """What a browser would make of a page: its tags, attributes, scripts, and the text in it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.inside: dict[str, list[str]] = {}
        self.text = ""
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._open = tag
        if tag in ("script", "style"):
            self.inside.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in ("script", "style"):
            self.inside[self._open][-1] += data
        else:
            self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data!r}")


def scene(number: int, before: Any, after: Any, **said: Any) -> Scene:
    event: dict[str, Any] = {
        "position": str(number), "id": f"e-{number}", "type": "ISSUE.UPDATED.SUCCESS",
        "source": "tamma", "occurredAt": f"2026-03-01T12:00:{number:02}.000Z", "severity": "info",
        "payload": after,
    }  # fmt: skip
    return Scene({**event, **said}, tuple(changes_between(before, after)))


def story(*scenes: Scene, title: str = "issueId:42", base: Any = None) -> Story:
    return Story(title, "last-write-wins@1", "position 0", "position 9", base or {}, scenes)


PLAIN = story(
    scene(1, {}, {"status": "open", "n": 1}),
    scene(2, {"status": "open", "n": 1}, {"status": "closed"}, severity="error"),
)


def harmless(page: Page) -> None:
    """The page has our tags and attributes only, and runs our script and style only."""
    assert set(page.tags) <= TAGS
    assert {name for name, _ in page.attributes} <= ATTRIBUTES
    assert page.inside == {"script": [SCRIPT], "style": [STYLE]}
    assert all(
        re.fullmatch(r"#s[0-9]+", value or "") for name, value in page.attributes if name == "href"
    )


def test_a_report_shows_every_event_and_what_it_changed() -> None:
    page = Page(write_report(PLAIN))

    harmless(page)
    for shown in ("Replay of issueId:42", "ISSUE.UPDATED.SUCCESS", "/status", '"open"', '"closed"'):
        assert shown in page.text
    assert page.tags.count("article") == page.tags.count("circle") == page.tags.count("li") == 2
    assert ("class", "error") in page.attributes
    assert {("class", "added"), ("class", "changed"), ("class", "removed")} <= set(page.attributes)


def test_a_report_needs_nothing_but_itself() -> None:
    text = write_report(PLAIN)

    assert not re.search(r"https?:|//[a-z]|\bsrc=|@import|url\(", text)


def test_the_policy_lets_only_the_page_s_own_script_and_style_run() -> None:
    page = Page(write_report(PLAIN))

    said = [value or "" for name, value in page.attributes if name == "content"]
    (policy,) = [value for value in said if "default-src" in value]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for kind, content in (("script", SCRIPT), ("style", STYLE)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
        assert page.inside[kind] == [content]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_anywhere_is_shown_and_never_becomes_markup(text: str) -> None:
    hostile: Any = {text: text, "deep": {text: [text, {text: None}]}}
    made = story(
        scene(1, {}, hostile, id=text, source=text, correlationId=text, severity=text),
        scene(2, hostile, {text: 1}, type=text, position=text, occurredAt=text, receivedAt=text),
        title=text,
        base={text: text},
    )

    page = Page(write_report(made))

    harmless(page)
    visible = re.sub("[\x00\x0b\u202e\ufeff]", "", text)
    assert visible in re.sub(r"\\u[0-9a-f]{4}", "", page.text)


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_at_all_is_only_text(one: str, other: str) -> None:
    if any("\ud800" <= c <= "\udfff" for c in one + other):
        return
    page = Page(write_report(story(scene(1, {}, {one: other}), title=other)))

    harmless(page)


def test_what_would_hide_or_turn_text_round_is_written_out() -> None:
    text = write_report(story(scene(1, {}, {"a": "x\u202ey\u200bz\x07"})))

    assert "x\\u202ey\\u200bz" in text
    assert not re.search("[\u202e\u200b\x07]", text)


def test_a_very_long_value_is_cut_and_says_so() -> None:
    text = write_report(story(scene(1, {}, {"a": "x" * 100_000})))

    assert len(text) < 100_000
    assert "characters)" in text


def test_numbers_keep_their_digits() -> None:
    from decimal import Decimal

    text = write_report(story(scene(1, {}, {"n": Decimal("0.12345678901234567890")})))

    assert "0.12345678901234567890" in text


def test_a_story_without_events_is_a_page_too() -> None:
    page = Page(write_report(story()))

    harmless(page)
    assert "0 events" in page.text


def test_a_report_opens_at_the_event_that_was_asked_for() -> None:
    made = Story("x", "r@1", "a", "b", {}, PLAIN.scenes, focus=2)

    assert ("data-focus", "1") in Page(write_report(made)).attributes
