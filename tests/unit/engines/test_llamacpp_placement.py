"""Layers on devices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.engines.llamacpp.placement import HOST, place


def counts(layers: int, n_gpu_layers: int, shares: list[float]) -> list[int]:
    placed = place(layers, n_gpu_layers, shares)
    return [placed.layers.count(device) for device in (*range(len(shares)), HOST)]


@pytest.mark.parametrize(
    ("n_gpu_layers", "shares", "expected", "output"),
    [
        (0, [1], [0, 32], HOST),
        (1, [1], [0, 32], 0),  # the output layer goes first
        (8, [1], [7, 25], 0),
        (32, [1], [31, 1], 0),
        (33, [1], [32, 0], 0),
        (999, [1], [32, 0], 0),
        (33, [1, 1], [17, 15, 0], 1),  # of 33 the first 17 are below one half
        (33, [3, 1], [25, 7, 0], 1),
        (33, [1, 0], [32, 0, 0], 0),
        (33, [], [32], HOST),
    ],
)
def test_layers_are_filled_from_the_back(
    n_gpu_layers: int, shares: list[float], expected: list[int], output: int
) -> None:
    assert counts(32, n_gpu_layers, shares) == expected
    assert place(32, n_gpu_layers, shares).output == output


def test_what_is_left_over_is_the_front() -> None:
    assert place(4, 3, [1]).layers == (HOST, HOST, 0, 0)


@given(
    st.integers(1, 200),
    st.integers(0, 300),
    st.lists(st.floats(0.1, 1e12), min_size=1, max_size=8),
)
def test_laws_of_placement(layers: int, n_gpu_layers: int, shares: list[float]) -> None:
    placed = place(layers, n_gpu_layers, shares)
    assert placed.on_gpus == min(n_gpu_layers, layers + 1)
    everything = [*placed.layers, placed.output]
    on_gpus = [device for device in everything if device != HOST]
    assert on_gpus == sorted(on_gpus)
    assert everything == [HOST] * (layers + 1 - placed.on_gpus) + on_gpus
    assert all(0 <= device < len(shares) for device in on_gpus)
