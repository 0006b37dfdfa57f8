"""Find what a reference inside a schema leads to; nothing outside the schema is ever looked for.

"#"   "#/$defs/Order"   "#order" ($anchor)   "orders/order" ($id)
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from penstock.envelope.envelope import JsonObject, JsonValue


class References:
    """Every place of one schema that a reference can name."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._named = dict(_named_places(root))

    def find(self, reference: str) -> JsonObject | None:
        """The schema that the reference leads to; None when it leads nowhere."""
        if reference == "#":
            return self._root
        if not reference.startswith("#/"):
            return self._named.get(reference)
        node: JsonValue = self._root
        for word in reference[2:].split("/"):
            name = unquote(word).replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and name in node:
                node = node[name]
            elif isinstance(node, list) and name.isdigit() and int(name) < len(node):
                node = node[int(name)]
            else:
                return None
        return node if isinstance(node, dict) else None


def _named_places(root: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Every place of the schema that a reference can call by name."""
    waiting: list[JsonValue] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            waiting += node.values()
            for word, before in (("$anchor", "#"), ("$dynamicAnchor", "#"), ("$id", "")):
                if isinstance(name := node.get(word), str):
                    yield before + name, node
