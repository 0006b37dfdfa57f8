"""React to events inside one process: no server, no queue.

    python examples/in_process_bus.py

A typed event is published; one handler reacts by publishing another, one watches everything, one
fails. The reaction names its cause, and the failure harms nobody.
"""

from __future__ import annotations

from penstock import Envelope, EventBus, EventType, Payload


class ProfileDue(Payload):
    """A dataset wants to be profiled."""

    canonical_key: str
    tier: str = "tier3"


PROFILE_DUE = EventType("metadata.profile.due", ProfileDue, sources=("kernel.scheduler",))


def main() -> None:
    bus = EventBus(
        source="metadata-studio.api",
        on_error=lambda failure: print(f"failed   {failure.event.type}: {failure.error}"),
    )

    async def profile(event: Envelope) -> None:
        due = ProfileDue.model_validate(event.payload)
        await bus.apublish(
            "metadata.profile.completed",
            payload={"canonicalKey": due.canonical_key, "qualityScore": 96.8},
        )

    def watch(event: Envelope) -> None:
        print(f"watched  {event.type} from {event.source}, caused by {event.causation_id or '-'}")

    def fail(_: Envelope) -> None:
        raise ValueError("this handler always fails")

    watching = bus.subscribe("*", watch)
    bus.subscribe(PROFILE_DUE, profile)
    bus.subscribe("metadata.profile.*", fail)
    bus.subscribe_once("metadata.**", lambda event: print(f"once     {event.type}"))

    bus.publish(PROFILE_DUE, id="due-1", payload=ProfileDue(canonical_key="revenue_gross"))

    watching.cancel()
    bus.unsubscribe(fail)
    bus.publish(PROFILE_DUE, id="due-2", payload=ProfileDue(canonical_key="revenue_net"))
    print(f"errors   {bus.errors}")


if __name__ == "__main__":
    main()
