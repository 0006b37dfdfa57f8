"""Publish many events in one call. Each has its own answer, and a bad one harms no other.

    PENSTOCK_TOKEN=<token> python examples/publish_many.py [how many]

The same events under the same ids, published again, are duplicates: run it twice and see.
"""

from __future__ import annotations

import sys
from collections import Counter

from penstock import EventRefused, Publisher


def partitions(count: int) -> list[dict[str, object]]:
    """Events in wire form, with ids of our own, so that publishing them again is harmless."""
    return [
        {
            "id": f"example-weather-{number}",
            "type": "timestore.partition.created",
            "payload": {
                "datasetId": "ds-weather",
                "datasetSlug": "weather",
                "partitionId": f"part-{number}",
                "rowCount": 1000 + number,
            },
        }
        for number in range(count)
    ]


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1500
    events = partitions(count)
    events.insert(1, {"type": "timestore.partition.created", "payload": {"rowCount": "many"}})

    with Publisher(source="timestore.ingest") as publisher:
        results = publisher.publish_many(events)

    for number, result in enumerate(results):
        if isinstance(result, EventRefused):
            places = ", ".join(fault.pointer for fault in result.faults)
            print(f"event {number} refused  {result.reason} at {places}")
    counts = Counter("refused" if isinstance(r, EventRefused) else r.status for r in results)
    print("  ".join(f"{word} {counts[word]}" for word in sorted(counts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
