"""Flags that only `kvplan simulate` has."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Seed = Annotated[int, typer.Option("--seed", help="Of the drawn requests.", min=0, max=2**31)]
Think = Annotated[
    str,
    typer.Option(
        "--think",
        metavar="TIME",
        help="With --turns: mean time from an answer to the next message: 30s, 5min.",
    ),
]
Requests = Annotated[
    str | None,
    typer.Option(
        "--requests",
        metavar="N",
        help="Requests to simulate (conversations, with --turns).",
        show_default="all of a trace, else 5000, or as many as come in --duration",
    ),
]
Duration = Annotated[
    str | None,
    typer.Option(
        "--duration", metavar="TIME", help="Stop arrivals after 24h, 30min.", show_default=False
    ),
]
StartAt = Annotated[
    str,
    typer.Option("--start-at", metavar="TIME", help="Time of day of the first arrival: 11h."),
]
Burst = Annotated[
    float,
    typer.Option(
        "--burst",
        min=0.0,
        max=100.0,
        help="Standard deviation of the time between arrivals over its mean: 1 is Poisson.",
    ),
]
Speed = Annotated[
    float,
    typer.Option("--speed", min=1e-6, max=1e6, help="A trace comes so many times as fast."),
]
Tiers = Annotated[
    list[str] | None,
    typer.Option(
        "--tier",
        metavar="NAME=SIZE@RATE",
        help="Memory behind the GPUs for evicted blocks, and how fast it is read: host=200GiB@pcie,"
        " disk=2TB@6GB, remote=10TB@ib-200. A rate in bytes is that of a replica, a link is one"
        " GPU's.",
        show_default=False,
    ),
]
StepTime = Annotated[
    str | None,
    typer.Option(
        "--step-time",
        metavar="PART=TIME,...",
        help="How long a step takes, as measured, instead of a roofline: step=8ms,prefill=30us."
        " PART is step, prefill (each token of a prompt), decode (each request that generates) or"
        " context (each token these attend to).",
        show_default=False,
    ),
]
BandwidthEfficiency = Annotated[
    float | None,
    typer.Option(
        "--bandwidth-efficiency",
        min=0.01,
        max=1.0,
        help="Share of the GPU's bandwidth that steps get.",
        show_default="0.8",
    ),
]
FlopsEfficiency = Annotated[
    float | None,
    typer.Option(
        "--flops-efficiency",
        min=0.01,
        max=1.0,
        help="Share of the GPU's 16-bit arithmetic that steps get.",
        show_default="0.5",
    ),
]
Overhead = Annotated[
    str, typer.Option("--overhead", metavar="TIME", help="More for every step: 2ms.")
]
FirstToken = Annotated[
    str | None,
    typer.Option(
        "--first-token",
        metavar="TIME",
        help="A good request has its first token within 2s.",
        show_default=False,
    ),
]
BetweenTokens = Annotated[
    str | None,
    typer.Option(
        "--between-tokens",
        metavar="TIME",
        help="And the next ones every 50ms or faster on average.",
        show_default=False,
    ),
]
Curve = Annotated[
    bool,
    typer.Option(
        "--curve", help="Add the hit rate of prefixes for every size of cache (needs numpy)."
    ),
]
Format = Annotated[
    Literal["text", "json", "csv", "svg"] | None,
    typer.Option(
        "--format",
        case_sensitive=False,
        help="text for people, json for every field, csv for the timeline, svg for a picture.",
        show_default="by the ending of --output, else text",
    ),
]
