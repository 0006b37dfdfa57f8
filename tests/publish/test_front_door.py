"""Hold `import penstock` to being cheap and to offering what the documentation uses."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import penstock

HEAVY = ("pyspark", "httpx", "fastapi", "psycopg", "pydantic", "pandas", "pyarrow", "jsonschema_rs")


def loaded_after(statement: str) -> set[str]:
    """Which heavy packages a fresh interpreter has loaded after a statement."""
    program = f"{statement}\nimport sys\nprint(*(n for n in {HEAVY!r} if n in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_after("import penstock") == set()


@pytest.mark.parametrize("name", ["Publisher", "EventBus"])
def test_publishing_never_loads_spark_a_server_or_a_database(name: str) -> None:
    loaded = loaded_after(f"from penstock import {name}; {name}")

    assert loaded.isdisjoint({"pyspark", "fastapi", "psycopg", "pandas", "pyarrow"})


def test_publishing_in_process_loads_no_http_client() -> None:
    program = "from penstock import EventBus; EventBus(source='s').publish('a.b')"

    assert "httpx" not in loaded_after(program)


def test_importing_the_package_takes_less_than_150_ms() -> None:
    program = (
        "import time; start = time.perf_counter(); import penstock;"
        " print(time.perf_counter() - start)"
    )
    times = [
        float(
            subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
        )
        for _ in range(3)
    ]

    assert min(times) < 0.150


@pytest.mark.parametrize("name", penstock.__all__)
def test_every_name_on_offer_can_be_had(name: str) -> None:
    assert getattr(penstock, name) is not None
    assert name in dir(penstock)


def test_every_name_on_offer_is_in_one_table() -> None:
    assert sorted(penstock._HOME) == sorted(penstock.__all__)


def test_a_name_that_is_not_on_offer_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        _ = penstock.Nonsense  # type: ignore[attr-defined]


def test_names_are_found_once_and_kept() -> None:
    first = penstock.Publisher
    start = time.perf_counter()

    for _ in range(1000):
        assert penstock.Publisher is first

    assert "Publisher" in vars(penstock)
    assert time.perf_counter() - start < 1
