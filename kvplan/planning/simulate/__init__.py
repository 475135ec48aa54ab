"""Discrete-event simulation of continuous batching over an engine's pool of blocks."""
