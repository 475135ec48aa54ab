"""Grids of configurations: the words for them, and what holds at every point."""
