"""Tables, from saved rows alone."""
