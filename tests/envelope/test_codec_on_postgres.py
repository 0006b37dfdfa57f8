"""Hold the codec to its promise through jsonb: what is read back is what was sent."""

from __future__ import annotations

import random
from decimal import Decimal

import psycopg

from penstock.envelope.codec import decode, encode, load_stored

LITERALS = (
    *("0", "-0", "1", "9007199254740993", "9223372036854775807", "-9223372036854775807"),
    *("0.1", "-0.0", "1.10", "1e22", "1e23", "1.5e300", "1e308", "1e-308", "2.5e-300"),
    *("1.7976931348623157e308", "123456789.123456789", "0.1000000000000000055511151231257827"),
    *("12345678901234567890.5", "1.00000000000000000001e20", "9.99999999999999999999e-300"),
    *('"é😀\\n\\u001f\\u2028"', '"12345678901234567890"', "null", "true", "{}", "[[],{}]"),
    *('{"b":{"é":[1,2.50,"x"]},"a":""}', '"\\\\u0000"', "[1e5,100000,1E+5]"),
)


def random_literals(count: int) -> list[str]:
    rng = random.Random(11)
    return [
        f"{rng.choice(('', '-'))}{rng.randrange(10)}.{rng.randrange(1, 10 ** rng.randrange(1, 39))}"
        f"e{rng.randrange(-300, 300)}"
        for _ in range(count)
    ]


def test_every_value_is_the_same_number_and_the_same_text_after_jsonb(database: str) -> None:
    sent = [decode(text.encode()) for text in (*LITERALS, *random_literals(500))]

    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT value::jsonb::text FROM unnest(%s::text[]) WITH ORDINALITY AS x(value, n)"
            " ORDER BY n",
            ([encode(value).decode() for value in sent],),
        ).fetchall()

    assert [as_written(load_stored(row[0])) for row in rows] == [as_written(v) for v in sent]


def as_written(value: object) -> object:
    """A value with every number as the decimal it is written as."""
    if isinstance(value, dict):
        return {key: as_written(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_written(item) for item in value]
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return Decimal(str(value))
    return value
