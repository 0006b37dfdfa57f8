"""Judge every message: accept it, or say exactly why not. Nothing is dropped."""
