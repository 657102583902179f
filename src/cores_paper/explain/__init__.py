"""Ways to explain a classifier, compared."""
