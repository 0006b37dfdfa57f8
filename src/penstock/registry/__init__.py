"""Say which event types exist, what their payloads look like, and what they mean."""
