"""Keep what there is to know about triggers: definitions, versions, deliveries, pauses, figures."""
