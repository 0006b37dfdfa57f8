"""The house rules hold: sizes, headers, names, and reference pages that leave nothing out."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from penstock.base import errors
from penstock.base.settings import ALIASES, Settings
from penstock.catalog.vocabularies import ALL
from penstock.ingress.verdict import Reason

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "penstock"
MODULES = sorted(SOURCE.rglob("*.py"))
WORLDLY = {"on_postgres", "on_spark", "on_disk", "on_kafka", "on_redis", "over_http", "over_pipe"}
# Rooms where the world is the subject: the edges, the composition root, the process table.
EDGES = {"api", "cli", "house"}


def name(module: Path) -> str:
    return str(module.relative_to(SOURCE))


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_a_module_says_what_it_is_for_and_stays_small(module: Path) -> None:
    text = module.read_text()
    header = ast.get_docstring(ast.parse(text))

    assert header, "no docstring"
    assert header.splitlines()[0].endswith("."), "the first line is a sentence"
    assert len(text.splitlines()) <= 300


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_a_function_fits_on_a_screen(module: Path) -> None:
    long = [
        (node.name, node.end_lineno - node.lineno + 1)
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > 40
    ]

    assert long == []


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_only_prepositions_touch_the_world(module: Path) -> None:
    room = module.relative_to(SOURCE).parts[0].removesuffix(".py")
    if module.stem in WORLDLY or room in EDGES:
        return
    imported = {
        (alias.name if isinstance(node, ast.Import) else (node.module or "")).split(".")[0]
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }

    assert not imported & {"psycopg", "psycopg_pool", "pyspark", "httpx", "requests", "subprocess"}


def test_no_room_is_called_utils() -> None:
    vague = {"utils", "helpers", "common", "core", "manager"}

    assert [
        name(m) for m in MODULES if vague & set(m.relative_to(SOURCE).with_suffix("").parts)
    ] == []


def test_the_rooms_are_the_same_in_the_package_the_contract_and_the_architecture_page() -> None:
    package = {p.name for p in SOURCE.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    package |= {"house"}
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = {
        room.strip().removeprefix("penstock.")
        for line in contract["contracts"][0]["layers"]
        for room in line.split("|")
    }
    page = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE))

    assert package == layers
    assert package <= page


def reference(page: str) -> str:
    return (ROOT / "docs" / "reference" / page).read_text()


@pytest.mark.parametrize("field", list(Settings.model_fields))
def test_every_setting_is_documented(field: str) -> None:
    assert f"`PENSTOCK_{field.upper()}`" in reference("settings.md")


@pytest.mark.parametrize("alias", list(ALIASES))
def test_every_alias_is_documented(alias: str) -> None:
    assert f"`{alias}`" in reference("settings.md")


@pytest.mark.parametrize("reason", list(Reason))
def test_every_rejection_reason_is_documented(reason: Reason) -> None:
    assert f"`{reason}`" in reference("reasons.md")


def codes() -> list[str]:
    kinds = [errors.PenstockError, *errors.PenstockError.__subclasses__()]
    return sorted({kind.code for kind in kinds})


@pytest.mark.parametrize("code", codes())
def test_every_error_code_is_documented(code: str) -> None:
    assert f"`{code}`" in reference("errors.md")


@pytest.mark.parametrize("event_type", [e.name for v in ALL for e in v.events])
def test_every_event_type_is_documented(event_type: str) -> None:
    assert f"`{event_type}`" in reference("event-types.md")


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False, text=True
    )
    return [ROOT / line for line in listed.stdout.split("\0") if line]


def test_nothing_names_a_registry_or_a_place_on_somebodys_machine() -> None:
    files = [
        f
        for f in tracked()
        if f.suffix in {".py", ".txt", ".toml", ".md", ".in", ""} and f.is_file()
    ]
    pattern = re.compile(
        r"pypi\.org|files\.pythonhosted|registry\.npmjs|repo1\.maven|/home/\w+/|/root/"
    )

    assert [
        str(f.relative_to(ROOT))
        for f in files
        if f != Path(__file__) and pattern.search(f.read_text(errors="replace"))
    ] == []


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)} -> {target}"
        for page in tracked()
        if page.suffix == ".md" and page.exists()
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text())
        if not (page.parent / target).exists()
    ]

    assert broken == []
