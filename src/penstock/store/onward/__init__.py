"""Go on from a position to the next matching events, without reading what lies between."""
