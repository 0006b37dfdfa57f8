"""Read stored payloads back, so that a proposed schema can be tried on them."""
