"""A report works in a browser: keys and clicks step through it, and nothing runs but its script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.chromium import Tab, tab
from tests.store.timetravel.test_report import HOSTILE

from penstock.envelope.envelope import JsonObject
from penstock.store.timetravel.diff import changes_between
from penstock.store.timetravel.report import write_report
from penstock.store.timetravel.story import Scene, Story

SHOWN = """({
  scenes: [...document.querySelectorAll("article")]
    .filter((each) => getComputedStyle(each).display !== "none").map((each) => each.id),
  address: location.hash,
  listed: [...document.querySelectorAll("nav [aria-current=step]")].map((a) => a.hash),
  dot: [...document.querySelectorAll("circle")].findIndex((c) => c.classList.contains("here")),
})"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with tab(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


def told(*states: JsonObject, focus: int | None = None) -> Story:
    """A story whose events lead from each state to the next."""
    scenes, before = [], JsonObject()
    for number, state in enumerate(states, 1):
        event: JsonObject = {
            "id": f"e-{number}",
            "type": "ISSUE.UPDATED.SUCCESS",
            "position": str(number),
            "occurredAt": f"2026-03-01T10:00:0{number % 10}.000Z",
            "severity": "warning",
            "payload": state,
        }
        scenes.append(Scene(event, tuple(changes_between(before, state))))
        before = state
    return Story("issueId:42", "last-write-wins@1", "0", "9", {}, tuple(scenes), focus)


def opened(browser: Tab, folder: Path, story: Story, place: str = "") -> Tab:
    file = folder / "report.html"
    file.write_text(write_report(story), "utf-8")
    browser.open(f"{file.as_uri()}{place}")
    return browser


def at(number: int) -> Any:
    name = f"s{number}"
    return {"scenes": [name], "address": f"#{name}", "listed": [f"#{name}"], "dot": number - 1}


FIVE = told(*({"title": f"version {n}", "n": n} for n in range(1, 6)))


def test_it_starts_with_the_first_event_and_shows_one_at_a_time(
    browser: Tab, tmp_path: Path
) -> None:
    page = opened(browser, tmp_path, FIVE)

    assert page.ask(SHOWN) == at(1)
    assert "version 1" in page.ask("document.querySelector('article.here').innerText")


def test_it_starts_with_the_event_that_was_asked_for(browser: Tab, tmp_path: Path) -> None:
    story = told(*({"n": n} for n in range(4)), focus=3)

    assert opened(browser, tmp_path, story).ask(SHOWN) == at(3)


def test_an_address_leads_to_its_event(browser: Tab, tmp_path: Path) -> None:
    assert opened(browser, tmp_path, FIVE, "#s4").ask(SHOWN) == at(4)


def test_keys_step_forward_and_back_and_stop_at_the_ends(browser: Tab, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, FIVE)

    for key, number in (
        ("ArrowRight", 2), ("n", 3), ("n", 4), ("p", 3), ("ArrowLeft", 2), ("End", 5),
        ("ArrowRight", 5), ("Home", 1), ("ArrowLeft", 1), ("x", 1),
    ):  # fmt: skip
        page.press(key)
        assert page.ask(SHOWN) == at(number), key


def test_keys_of_the_browser_itself_are_left_alone(browser: Tab, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, FIVE)

    page.press("End", modifiers=2)

    assert page.ask(SHOWN) == at(1)


def test_the_list_and_the_timeline_lead_to_their_events(browser: Tab, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, FIVE)

    page.click("nav li:nth-child(3) a")
    assert page.comes_to(SHOWN, at(3))

    page.click("svg a:nth-of-type(2) circle")
    assert page.comes_to(SHOWN, at(2))


def test_an_event_and_the_states_unfold(browser: Tab, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, FIVE, "#s2")

    page.click("article.here summary")
    page.click("header details:last-of-type summary")

    assert '"id": "e-2"' in page.ask("document.querySelector('article.here pre').innerText")
    assert '"n": 5' in page.ask("document.querySelector('header details[open] pre').innerText")


def test_hostile_events_run_nothing_load_nothing_and_are_shown(
    browser: Tab, tmp_path: Path
) -> None:
    page = opened(browser, tmp_path, told(*({"said": text, text: 1} for text in HOSTILE)))

    for _ in HOSTILE:
        page.press("n")

    assert page.complaints == []
    assert page.requests == [(tmp_path / "report.html").as_uri()]
    assert page.ask("document.scripts.length") == 1
    assert page.ask("document.querySelectorAll('img, iframe, form, base, link').length") == 0
    assert page.ask(SHOWN) == at(len(HOSTILE))


def test_no_words_are_torn_and_nothing_leaves_a_narrow_screen(browser: Tab, tmp_path: Path) -> None:
    wide = "a long sentence that has to be wrapped somewhere " * 20
    page = opened(browser, tmp_path, told({"title": wide, "x" * 300: "y" * 3000}))
    lines = page.ask(
        "(() => { const text = document.createRange(); text.selectNodeContents("
        "[...document.querySelectorAll('.pointer')].find((p) => p.innerText === '/title'));"
        " return text.getClientRects().length })()"
    )

    screen = {"width": 380, "height": 700, "deviceScaleFactor": 1, "mobile": True}
    page.call("Emulation.setDeviceMetricsOverride", **screen)
    narrow = page.ask("[document.documentElement.scrollWidth, innerWidth]")
    page.call("Emulation.clearDeviceMetricsOverride")

    assert lines == 1, "a pointer stands on one line where there is room"
    assert narrow == [380, 380]
