"""Plain look-ups rendered without Liquid say what Liquid would say."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.triggers.definitions import document

from penstock.triggers.template import compile_text

NAMES = st.sampled_from(["a", "b"])
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-9, 9),
        st.floats(-1, 1),
        st.text("ab{%} ", max_size=4),
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=6,
)
PARTS = st.lists(
    st.one_of(
        st.sampled_from(["x", " ", "\n", "-"]),
        st.lists(st.sampled_from([".a", ".b", "[0]", "[-1]", "['a']"]), max_size=3).map(
            lambda steps: f"{{{{ event.payload{''.join(steps)} }}}}"
        ),
        st.sampled_from(["{{ now }}", "{{ event.id }}", "{{- event.type -}}"]),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=300, deadline=None)
@given(parts=PARTS, payload=VALUES)
def test_both_ways_render_the_same(parts: list[str], payload: Any) -> None:
    source = "".join(parts)
    names = {"event": document(payload), "now": "2026-03-01T12:00:00.000Z"}

    # An assignment that nobody reads is more than a look-up, so that Liquid renders the rest.
    through_liquid = compile_text("{% assign unread = 1 %}" + source)

    assert compile_text(source).render(names) == through_liquid.render(names)
