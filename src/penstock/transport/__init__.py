"""Carry messages from the door to the ingress: durable before acknowledged, counted, never lost."""
