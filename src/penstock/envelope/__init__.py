"""Say what an event is: the one shape, its grammar, its bytes, and the context it is born in."""
