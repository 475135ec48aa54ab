"""Starts of other engines than vLLM against kvplan, engine by engine."""
