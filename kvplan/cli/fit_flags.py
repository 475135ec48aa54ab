"""Flags of `kvplan fit` that no other command has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Gpus = Annotated[
    str | None,
    typer.Option(
        "--gpus",
        metavar="NAMES",
        help="GPUs to try: names or patterns with commas, 'H100*,L40S'.",
        show_default="those that --instances or --prices have, else all",
    ),
]
Instances = Annotated[
    str | None,
    typer.Option(
        "--instances",
        metavar="CLOUDS",
        help="Buy whole machines of these clouds: aws, azure, gcp, with commas, or all.",
        show_default=False,
    ),
]
Prices = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        help="Your own prices (YAML, kvplan.prices/1), which win over the bundled ones.",
        show_default=False,
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="MONEY",
        help="The most it may cost, in the currency of the prices: 20/h, 480/day, 15k/month.",
        show_default=False,
    ),
]
Slo = Annotated[
    str | None,
    typer.Option(
        "--slo",
        metavar="LIMITS",
        help="Longest times: tpot=50ms (of a token), ttft=2s (until the first). Judged by bounds:"
        " what misses them can't keep them.",
        show_default=False,
    ),
]
Engines = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="ENGINES",
        help="Engines to try, each optionally pinned: vllm,sglang==0.5.23, or all.",
    ),
]
WeightFormats = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="FORMATS",
        help="Formats of the weights to try.",
        show_default="auto,fp8,awq",
    ),
]
KvDtypes = Annotated[
    str | None,
    typer.Option(
        "--kv-dtype",
        metavar="FORMATS",
        help="Cache types to try, by the engine's own names.",
        show_default="auto,fp8",
    ),
]
Tensor = Annotated[
    str | None,
    typer.Option(
        "--tp",
        metavar="SIZES",
        help="Tensor parallel sizes to try.",
        show_default="1,2,4,8,16 within a machine",
    ),
]
Pipeline = Annotated[
    str | None,
    typer.Option(
        "--pp", metavar="SIZES", help="Pipeline parallel sizes to try.", show_default="1,2,4,8"
    ),
]
MaxGpus = Annotated[
    str, typer.Option("--max-gpus", metavar="N", help="GPUs of the whole deployment at most.")
]
Prompt = Annotated[
    str | None,
    typer.Option(
        "--prompt",
        metavar="TOKENS",
        help="Tokens of a prompt, for the time until its first token.",
        show_default="all of a request",
    ),
]
NodeSize = Annotated[
    str | None,
    typer.Option(
        "--gpus-per-node",
        metavar="N",
        help="GPUs that share fast links, where no machines are bought: the widest --tp.",
        show_default="8",
    ),
]
Efficiency = Annotated[
    str | None,
    typer.Option(
        "--efficiency",
        metavar="SHARES",
        help="What the bounds take of a GPU's peak: bandwidth=0.8,flops=0.5; 1 is the data sheet.",
        show_default="bandwidth=0.8,flops=0.5",
    ),
]
Top = Annotated[str, typer.Option("--top", metavar="N", help="Plans to show in text and Markdown.")]
Concurrency = Annotated[
    str | None,
    typer.Option(
        "--concurrency",
        metavar="N",
        help="Requests to hold at once.",
        show_default="1, or what the traffic needs",
    ),
]
ReportFormat = Annotated[
    Literal["text", "json", "csv", "markdown"] | None,
    typer.Option(
        "--format",
        case_sensitive=False,
        help="text for people, json for every field, csv for a row a plan, markdown for a pull"
        " request.",
        show_default="by the ending of --output, else text",
    ),
]
