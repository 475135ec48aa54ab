"""Encoders of images and sound: what lies beside a decoder on the first pipeline stage."""
