"""Scenario files from loading to result: the wiring behind ``kvplan check``, ``lock``, ``diff``.

It stands above `kvplan.api`, as `kvplan.side_by_side` does: a check asks `size` once a variant.
"""
