"""Flags that say what traffic there is: shared by `kvplan traffic` and `kvplan simulate`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from kvplan.cli.complete import complete_engine

Trace = Annotated[
    str | None,
    typer.Option(
        "--traffic",
        metavar="FILE",
        help="A trace of requests: CSV or JSON lines, plain or gzipped, or - (standard input).",
        show_default=False,
    ),
]
TraceColumns = Annotated[
    str | None,
    typer.Option(
        "--trace-columns",
        metavar="FIELD=COLUMN,...",
        help="Columns of the trace, where their names don't say it: arrival=ts:ms,prompt=n_in."
        " FIELD is arrival, prompt, output, blocks, session or turn.",
        show_default=False,
    ),
]
Lengths = Annotated[
    str | None,
    typer.Option(
        "--lengths",
        metavar="LENGTHS",
        help="In place of a trace: prompts, a slash, outputs. 8k/300, p50=1k,p95=8k/p50=200,"
        "p95=900, lognormal:median=1k,sigma=0.9/300, pareto:min=200,alpha=1.5/64,"
        " hist:512=3,1024=1/64, or mixed: '70% 1k/300 + 30% 8k/100'.",
        show_default=False,
    ),
]
Turns = Annotated[
    str | None,
    typer.Option(
        "--turns",
        metavar="N",
        help="The lengths are those of one message and one answer, in conversations of N turns"
        " whose context grows.",
        show_default=False,
    ),
]
Prefix = Annotated[
    str | None,
    typer.Option(
        "--prefix",
        metavar="TOKENS[,...]",
        help="A shared system prompt in front of --lengths (within the prompts of a trace): 2k, or"
        " 2k,tenants=20,share=80%,change=24h; 2k,global for one copy across tenants;"
        " 2k,personal is never global.",
        show_default=False,
    ),
]
Rate = Annotated[
    str | None,
    typer.Option(
        "--rate",
        metavar="RATE",
        help="Requests that come, over a whole day: 5/s, 300/min, 20k/h, 1M/day.",
        show_default="for a trace, its own",
    ),
]
Users = Annotated[
    str | None,
    typer.Option(
        "--users",
        metavar="N",
        help="In place of a rate: users who send their next request some time after the answer.",
        show_default=False,
    ),
]
Think = Annotated[
    str,
    typer.Option(
        "--think",
        metavar="TIME",
        help="Mean time from an answer to that user's next request: 30s, 5min.",
    ),
]
Daily = Annotated[
    str | None,
    typer.Option(
        "--daily",
        metavar="PROFILE",
        help="How the rate moves over a day: peak=2.5 (busiest hour over the mean), or 24 weights"
        " with commas from midnight.",
        show_default="flat",
    ),
]
DecodeRate = Annotated[
    str | None,
    typer.Option(
        "--decode-rate",
        metavar="TOKENS/S",
        help="Tokens that one request generates a second while others are served too.",
        show_default=False,
    ),
]
PrefillRate = Annotated[
    str | None,
    typer.Option(
        "--prefill-rate",
        metavar="TOKENS/S",
        help="Tokens of one request's prompt that are computed a second.",
        show_default="at once",
    ),
]
Risk = Annotated[
    str,
    typer.Option(
        "--risk",
        metavar="SHARE",
        help="The share of the time that the pool may be too small: 0.1%, 1%.",
    ),
]
Retain = Annotated[
    str | None,
    typer.Option(
        "--retain",
        metavar="TIME",
        help="Keep a session's blocks for its next turn, at most so long: 5min. Needs --turns or"
        " --users, --think and --decode-rate.",
        show_default=False,
    ),
]
Tiers = Annotated[
    list[str] | None,
    typer.Option(
        "--tier",
        metavar="NAME=SIZE@RATE",
        help="What a memory behind the GPUs is worth: host=200GiB@pcie, disk=2TB@6GB,"
        " remote=10TB@ib-200. A rate in bytes is that of a replica, a link is one GPU's.",
        show_default=False,
    ),
]
KvLink = Annotated[
    str | None,
    typer.Option(
        "--kv-link",
        metavar="LINK",
        help="Compute prompts on replicas of their own and move the cache over this link of each"
        " GPU: nvlink, pcie, pcie-5, ib-200, ib-400, eth-100, or a rate: 400Gb, 50GB.",
        show_default=False,
    ),
]
LinkEfficiency = Annotated[
    float | None,
    typer.Option(
        "--link-efficiency",
        min=0.01,
        max=1.0,
        help="Share of the link that a transfer gets.",
        show_default="0.9",
    ),
]
PrefillGpu = Annotated[
    str | None,
    typer.Option(
        "--prefill-gpu", metavar="GPU", help="Of those replicas.", show_default="as --gpu"
    ),
]
PrefillTp = Annotated[
    str | None,
    typer.Option("--prefill-tp", metavar="N", help="GPUs of one of them.", show_default="as --tp"),
]
FirstToken = Annotated[
    str | None,
    typer.Option(
        "--first-token",
        metavar="TIME",
        help="With --kv-link: 95 % of requests have their first token within 2s.",
        show_default=False,
    ),
]
BetweenTokens = Annotated[
    str | None,
    typer.Option(
        "--between-tokens",
        metavar="TIME",
        help="With --kv-link: and the next ones every 50ms or faster.",
        show_default=False,
    ),
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="Find the held requests by simulation too (needs numpy); where it disagrees by more"
        " than 2 %, the analysis is not offered.",
    ),
]
OneEngine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="Serving engine, optionally pinned: vllm==0.33.0.",
        autocompletion=complete_engine,
    ),
]
Format = Annotated[
    Literal["text", "json", "csv", "markdown", "svg"] | None,
    typer.Option(
        "--format",
        case_sensitive=False,
        help="text for people, json for every field, csv for the hours, markdown for a comment,"
        " svg for a picture of the day.",
        show_default="by the ending of --output, else text",
    ),
]
