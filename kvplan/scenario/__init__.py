"""Scenario files: deployments as YAML, what is expected of them, and whether it holds."""
