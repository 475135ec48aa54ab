"""Arguments and flags by meaning, as types: commands that share a flag share its words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from kvplan.cli.complete import complete_engine, complete_gpu, complete_model

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Hub id (org/name, optionally @revision), folder, config.json, bundled id, or -"
        " (a config.json on standard input).",
        autocompletion=complete_model,
        show_default=False,
    ),
]
SizedModel = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="Hub id (org/name, optionally @revision), folder, config.json, bundled id, or -"
        " (a config.json on standard input). Required, unless --from-command names one.",
        autocompletion=complete_model,
        show_default=False,
    ),
]
Gpu = Annotated[
    str | None,
    typer.Option(
        "--gpu",
        metavar="GPU",
        help="Name of a GPU, auto (this machine's), or custom:48GiB. Required.",
        autocompletion=complete_gpu,
        show_default=False,
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="Serving engine, optionally pinned: vllm==0.33.0; all, or names with commas, puts"
        " several side by side.",
        autocompletion=complete_engine,
    ),
]
Tp = Annotated[
    str,
    typer.Option("--tp", metavar="N", help="Tensor parallel size: GPUs that share each layer."),
]
Pp = Annotated[
    str,
    typer.Option("--pp", metavar="N", help="Pipeline parallel size: stages of layers."),
]
Dp = Annotated[
    str,
    typer.Option("--dp", metavar="N", help="Data parallel size: replicas of the model."),
]
Dcp = Annotated[
    str,
    typer.Option(
        "--dcp", metavar="N", help="Decode context parallel size: ranks that share one cache."
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="TOKENS",
        help="Tokens a request: 32k, 131072, or auto (the longest that fits).",
        show_default="the model's own maximum",
    ),
]
# Where no search answers auto.
Length = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="TOKENS",
        help="Tokens a request: 32k, 131072.",
        show_default="the model's own maximum",
    ),
]
Concurrency = Annotated[
    str | None,
    typer.Option(
        "--concurrency",
        metavar="N",
        help="Requests to hold at once; without it capacity is reported, not judged.",
        show_default=False,
    ),
]
Weights = Annotated[
    str,
    typer.Option(
        "--weights",
        metavar="FORMAT",
        help="Format of the weights: auto (as the checkpoint is), fp8, awq, ...",
    ),
]
KvDtype = Annotated[
    str,
    typer.Option(
        "--kv-dtype", metavar="FORMAT", help="The engine's own cache type: auto, fp8, ..."
    ),
]
Dtype = Annotated[
    str,
    typer.Option("--dtype", metavar="TYPE", help="Type the model computes in: auto, bfloat16, ..."),
]
GpusPerNode = Annotated[
    str | None,
    typer.Option(
        "--gpus-per-node",
        metavar="N",
        help="GPUs of one machine; a wider tensor parallel group is pointed out.",
        show_default=False,
    ),
]
KvBudget = Annotated[
    list[str] | None,
    typer.Option(
        "--kv-budget",
        metavar="SIZE",
        help="Plan exactly this KV cache on each GPU: 40.5GiB. Repeat it, or list sizes with"
        " commas, for one a rank.",
        show_default=False,
    ),
]
KvPolicy = Annotated[
    str | None,
    typer.Option(
        "--kv-policy",
        metavar="POLICY",
        help="What dropping entries of the cache would do: streaming:sinks=4,window=4096,"
        " h2o:budget=2k, snapkv:budget=2k, kvpress:ratio=0.5. It trades recall.",
        show_default=False,
    ),
]
EngineOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="NAME=VALUE",
        help="An option of the engine by its own name: max_num_seqs=64; with several engines"
        " vllm.max_num_seqs=64. Repeatable.",
        show_default=False,
    ),
]
FromCommand = Annotated[
    str | None,
    typer.Option(
        "--from-command",
        metavar="LINE",
        help="Plan what this command starts: 'vllm serve MODEL ...', docker run, a container's"
        " args, or - (on standard input). Flags beside it win.",
        show_default=False,
    ),
]
Emit = Annotated[
    Literal["vllm", "sglang", "tensorrt-llm", "llama.cpp", "ollama", "docker", "helm"] | None,
    typer.Option(
        "--emit",
        help="Print the command that starts what was planned, instead of a report; docker runs it"
        " in the engine's own image, helm prints values for vLLM's chart.",
        show_default=False,
    ),
]
Offline = Annotated[
    bool,
    typer.Option("--offline", help="Use bundled specs and local caches; never ask the Hub."),
]
ReportFormat = Annotated[
    Literal["text", "json", "csv", "markdown"] | None,
    typer.Option(
        "--format",
        case_sensitive=False,
        help="text for people, json for every field, csv for the ledger's lines, markdown for a"
        " pull request.",
        show_default="by the ending of --output, else text",
    ),
]
Explain = Annotated[
    bool,
    typer.Option("--explain", help="Add each line's formula with its numbers, and its source."),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="Write to a file, whole or not at all, instead of stdout.",
        show_default=False,
    ),
]

Configs = Annotated[
    Path | None,
    typer.Option(
        "--configs",
        metavar="DIR",
        help="Folder of ORG--NAME/config.json, tried before the Hub and the bundled specs.",
        show_default=False,
    ),
]
Profile = Annotated[
    Path | None,
    typer.Option(
        "--profile",
        metavar="FILE",
        help="What `kvplan calibrate` learned of the machine that is planned for.",
        show_default=False,
    ),
]
