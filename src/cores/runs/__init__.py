"""Runs, and many of them."""
