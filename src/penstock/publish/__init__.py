"""Publish events: prepare them, check them, send them until they are durable, hand them round."""
