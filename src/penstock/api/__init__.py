"""Answer over HTTP: publish, query, look after, and watch, all behind tokens."""
