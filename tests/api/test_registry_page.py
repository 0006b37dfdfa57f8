"""The page of the registry shows every type as the reference does, to whoever has a token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.support import Server
from tests.chromium import Tab, tab

from penstock.access.token import Scope

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(1)</script>"
SCHEMA = {
    "type": "object",
    "description": f"Something happened. {HOSTILE}",
    "required": ["id"],
    "properties": {
        "id": {"type": "string", "description": HOSTILE},
        "email": {"type": "string", "x-pii": {"subject": "/id"}},
    },
    "examples": [{"id": HOSTILE}],
}
TYPE = "shop.page.shown"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with tab(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture
def page(api: Server, browser: Tab) -> Tab:
    """The page, opened anew by somebody who gave no token yet."""
    body = {"eventType": TYPE, "schema": SCHEMA, "metadata": {"sources": ["shop.api"]}}
    assert api.admin.post("/admin/event-schemas", json=body).status_code == 201
    browser.open(f"{api.url}/?page=registry")
    browser.ask("sessionStorage.clear()")
    browser.open(f"{api.url}/?page=registry")
    assert browser.comes_to("document.querySelector('#ask').hidden", wanted=False)
    return browser


def enter(page: Tab, token: str) -> None:
    page.ask(f"document.querySelector('#token').value = {json.dumps(token)}")
    page.click("#ask button")


def shown(page: Tab) -> Any:
    return page.ask("document.querySelector('#entry').innerText")


def faults(page: Tab) -> list[str]:
    """What went wrong in the page; that the server asked for a token first is no fault."""
    return [each for each in page.complaints if "401 (Unauthorized)" not in each]


def choose(page: Tab, name: str) -> None:
    page.ask(f"location.hash = {json.dumps(name)}")
    assert page.comes_to("document.querySelector('#entry h2')?.textContent", name)


def test_the_page_holds_no_data_and_lets_nothing_run_but_itself(api: Server) -> None:
    answered = api.stranger.get("/?page=registry")

    policy = answered.headers["content-security-policy"]
    assert answered.headers["content-type"].startswith("text/html")
    assert TYPE not in answered.text
    assert "script-src 'sha256-" in policy
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy


def test_with_a_token_every_type_is_listed_and_found(api: Server, page: Tab) -> None:
    enter(page, api.token(Scope.EVENTS_READ))

    listed = "[...document.querySelectorAll('#list a')].map((a) => a.textContent)"
    assert page.comes_to("document.querySelector('#types').hidden", wanted=False)
    names = page.ask(listed)
    assert {TYPE, "ISSUE.ASSIGNED.SUCCESS", "metastore.record.updated"} <= set(names)
    assert names == sorted(set(names))

    page.ask(
        "(() => { const find = document.querySelector('#find'); find.value = 'issue.assigned';"
        " find.dispatchEvent(new Event('input')) })()"
    )
    assert page.ask(listed) == ["ISSUE.ASSIGNED.SUCCESS"]


def test_a_type_is_shown_as_its_reference_page_has_it(api: Server, page: Tab) -> None:
    enter(page, api.token(Scope.EVENTS_READ))

    choose(page, "ISSUE.ASSIGNED.SUCCESS")

    text = shown(page)
    entry = api.admin.get("/admin/event-schemas/ISSUE.ASSIGNED.SUCCESS").json()["data"]
    assert entry["purpose"] in text
    for field in entry["fields"]:
        assert field["path"] in text
        assert field["meaning"] in text
    for word in (*entry["sources"], *entry["tags"], entry["severity"], entry["vocabulary"]):
        assert word in text
    assert json.dumps(entry["example"]["labels"][0]) in text
    assert faults(page) == []


def test_what_a_type_says_is_text_and_nothing_is_loaded_from_elsewhere(
    api: Server, page: Tab
) -> None:
    enter(page, api.token(Scope.EVENTS_READ))

    choose(page, TYPE)

    assert HOSTILE in shown(page)
    assert "personal" in shown(page)
    assert page.ask("document.querySelectorAll('img, iframe').length") == 0
    assert page.ask("document.scripts.length") == 1
    assert faults(page) == []
    assert {each.startswith(f"{api.url}/") for each in page.requests} == {True}


def test_a_token_that_is_refused_says_so_and_asks_again(api: Server, page: Tab) -> None:
    enter(page, "a-token-that-nobody-knows-of")

    refused = "document.querySelector('#refused').textContent"
    assert page.comes_to(f"{refused} !== ''", wanted=True)
    assert page.ask("document.querySelector('#types').hidden") is True
    assert page.ask("sessionStorage.length") == 0

    enter(page, api.token(Scope.EVENTS_READ))
    assert page.comes_to("document.querySelector('#types').hidden", wanted=False)


def test_an_address_leads_to_its_type_and_an_unknown_one_to_the_nearest(
    api: Server, page: Tab
) -> None:
    enter(page, api.token(Scope.EVENTS_READ))
    assert page.comes_to("document.querySelector('#types').hidden", wanted=False)

    page.ask("location.hash = 'ISSUE.ASIGNED.SUCCESS'")

    near = "document.querySelector('#entry').innerText.includes('ISSUE.ASSIGNED.SUCCESS')"
    assert page.comes_to(near, wanted=True)
