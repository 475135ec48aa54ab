"""Measured engine starts against predictions: one file a check."""
