"""A first scenario file, with comments, around a command that somebody runs already."""

from __future__ import annotations

import json
import re
import textwrap

from kvplan.engines.vllm.command_read import Command
from kvplan.errors import UsageError
from kvplan.scenario.schema import SCHEMA

# The value of a flag or a variable that nobody else should read; what a shell fills in may stay.
_SECRET = re.compile(
    r"(--(?:api[-_]key|hf[-_]token)[ =]\s*|\b[A-Z_]*(?:TOKEN|KEY|SECRET|PASSWORD)=)"
    r"(?!\$|[\"']\$)(?:\"[^\"]*\"|'[^']*'|\S+)"
)
_LINE = "# yaml-language-server: $schema=kvplan-scenario.schema.json"
_TEMPLATE = """\
{modeline}
# Check it with `kvplan check {file}`; the line above gives editors completion once
# `kvplan schema scenario > kvplan-scenario.schema.json` lies beside this file.
schema: {schema}

defaults:
  # Holds for every scenario. Pinned, so that no new release moves a default unseen.
  engine: {engine}
  gpu: {gpu}

scenarios:
  {name}:
{body}
    # Requests at once over the whole deployment.
    concurrency: {concurrency}
    # workload:
    #   tokens_p99: 4k           # what 99 % of requests stay below, prompt and answer
    #   seconds_per_request: 20  # with prices it gives cost_per_request
    #   prefixes:
    #     - {{name: system-prompt, tokens: 1200, scope: tenant, version: "1"}}
    #   sessions: {{ttl: 15min}}
    # prices: {{gpu_hour: 2.50, currency: USD}}
    expect:
      - verdict == fits
      - headroom >= 10%
      # - requests >= 50
      # - kv.tokens_low >= 400k
      # - cost_per_request <= 0.002 USD
"""


def starter(
    *,
    gpu: str,
    engine: str,
    file: str,
    command: str | None = None,
    read: Command | None = None,
    model: str | None = None,
    name: str = "first",
    concurrency: int = 8,
) -> str:
    """The text of a scenario file.

    Args:
        gpu: The GPU.
        engine: The engine, pinned.
        file: What the file will be called.
        command: A command line that starts vLLM, as it is; it is kept as it is.
        read: What that command says.
        model: The model, where the command names none or there is no command.
        name: Of the scenario.
        concurrency: Requests at once.

    Raises:
        UsageError: neither a model nor a command that names one.
    """
    named = model or (read.model if read else None)
    if named is None:
        raise UsageError(
            "No model is named.",
            hint="Give --model, or --from-command 'vllm serve ORG/MODEL ...'.",
        )
    return _TEMPLATE.format(
        modeline=_LINE,
        schema=SCHEMA,
        file=file,
        engine=json.dumps(engine),
        gpu=json.dumps(gpu),
        name=json.dumps(name),
        body=_body(command, read, model if model or command is None else None),
        concurrency=concurrency,
    )


def _body(command: str | None, read: Command | None, model: str | None) -> str:
    lines = []
    if model is not None:
        lines += ["# Pin the revision: org/name@COMMIT.", f"model: {json.dumps(model)}"]
    if command is not None:
        lines += ["# As it is run; keys beside it win over its flags.", "command: |"]
        lines += textwrap.indent(_escaped(command), "  ").split("\n")
        lines += [f"# Not planned: {remark}" for remark in (read.remarks if read else ())]
        if _SECRET.search(command):
            lines.append("# What the command keeps secret was left out: many can read this file.")
    if command is None:
        lines += ["# Tokens a request may have, prompt and answer.", "context: 32k"]
    return textwrap.indent("\n".join(lines), "    ")


def _escaped(command: str) -> str:
    """The command with ``${NAME}`` kept for the shell, and no line that YAML would refuse."""
    command = _SECRET.sub(r"\1LEFT-OUT", command)
    return command.strip().replace("\t", "    ").replace("${", "$${")
