"""Explanations: the kept part of a graph as records, pages and pictures."""
