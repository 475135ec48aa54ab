"""Decoders with towers: which towers and projectors each class puts beside its text model."""
