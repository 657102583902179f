"""What a model kept of a graph, as records and pictures."""
