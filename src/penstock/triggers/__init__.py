"""Act on events: judge every stored event once, in order, and say why."""
