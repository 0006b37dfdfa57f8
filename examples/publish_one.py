"""Publish one event to a running server, and say what became of it.

    make up                                            # prints the address and the token
    PENSTOCK_TOKEN=<token> python examples/publish_one.py

PENSTOCK_URL names another server. When the call returns, the event is durable.
"""

from __future__ import annotations

import sys

from penstock import PenstockError, Publisher


def main() -> int:
    with Publisher(source="metastore.api") as publisher:
        try:
            outcome = publisher.publish(
                "metastore.record.updated",
                payload={"namespace": "feature-flags", "key": "frontend-search", "version": 12},
                tags={"mode": "example"},
                correlation_id="req-41ac2fd3",
            )
        except PenstockError as error:
            # EventRefused: `error.faults` says where it is wrong. QueueUnavailable: six attempts
            # with growing pauses have failed, and `error.unsent` has the event to publish later.
            print(f"error  {error.code}: {error.detail}\n  fix  {error.remedy}", file=sys.stderr)
            return 1
    print(f"{outcome.status}  {outcome.id}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
