"""What was read of a model, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kvplan.models.spec import ModelSpec
from kvplan.reports.clean import clean
from kvplan.reports.figures import counted, parameters, share
from kvplan.reports.model_rows import cache_rows, weight_rows
from kvplan.reports.text_console import INDENT, items, lay_out, spaced, table
from kvplan.units import format_bytes, format_count

_SHOWN_IMAGE = 1024  # pixels of a side


def model_text(model: ModelSpec, *, context: int, width: int, color: bool, ascii_only: bool) -> str:
    """Layers, weights, what was filled in, and where all of it was read.

    Args:
        model: As `kvplan.architectures` concluded it.
        context: Tokens of the request whose bytes are shown.
        width: Columns, at least 80.
        color: Write ANSI colours.
        ascii_only: Use no character beyond ASCII.
    """
    parts = (
        Text(clean(model.id), style="bold"),
        _facts(model),
        spaced(_caches(model, context, ascii_only=ascii_only)),
        spaced(_weights(model, ascii_only=ascii_only)),
        *_lists(model),
    )
    return lay_out(parts, width=width, color=color, ascii_only=ascii_only)


def _facts(model: ModelSpec) -> RenderableType:
    longest = "not stated" if model.max_context is None else counted(model.max_context, "token")
    experts = (
        f"{format_count(model.experts)} experts, {format_count(model.experts_per_token)} a token"
        if model.experts
        else ""
    )
    facts = (
        f"{model.architecture} ({model.model_type})",
        parameters(model.parameters_total),
        counted(len(model.layers), "layer"),
        f"hidden size {format_count(model.hidden_size)}",
        experts,
        f"computes in {model.dtype}",
        f"quantized: {model.quantization}" if model.quantization else "",
        f"cache prescribed: {model.kv_scheme}" if model.kv_scheme else "",
        f"longest context {longest}",
        _image(model),
    )
    return Text(clean(" · ".join(fact for fact in facts if fact)))


def _image(model: ModelSpec) -> str:
    rule = model.images
    if rule is None:
        return ""
    if rule.kind == "fixed":
        return f"an image takes {counted(rule.tokens_each, 'token')}"
    side, most = format_count(_SHOWN_IMAGE), rule.most()
    limit = "" if most is None else f", at most {format_count(most)}"
    tokens = counted(rule.tokens(_SHOWN_IMAGE, _SHOWN_IMAGE), "token")
    return f"an image of {side} × {side} pixels takes {tokens}{limit}"


def _caches(model: ModelSpec, context: int, *, ascii_only: bool) -> RenderableType:
    numbers = ("A kept token", "A request")
    made = table(words=("KV cache", "Kept", "Layers"), numbers=numbers, ascii_only=ascii_only)
    rows = cache_rows(model, context)
    for row in rows:
        made.add_row(
            Text(f"{' ' * INDENT}{counted(row.layer_count, 'layer')}: {row.kind}"),
            Text(row.shape),
            Text(row.layers),
            format_bytes(row.bytes_per_token),
            format_bytes(row.bytes_per_request),
        )
    made.add_row(
        "Total",
        "",
        "",
        format_bytes(sum(row.bytes_per_token for row in rows)),
        format_bytes(sum(row.bytes_per_request for row in rows)),
        style="bold",
    )
    remark = (
        f"All layers of a row together, on one GPU (TP 1), in {model.dtype}, before any engine's"
        f" paging; a request of {counted(context, 'token')}."
    )
    return Group(made, Text(remark))


def _weights(model: ModelSpec, *, ascii_only: bool) -> Table:
    numbers = ("Parameters", "Bytes", "Share")
    made = table(words=("Weights as stored",), numbers=numbers, ascii_only=ascii_only)
    rows = weight_rows(model)
    whole = sum(row.bytes for row in rows)
    for row in rows:
        made.add_row(
            Text(f"{' ' * INDENT}{clean(row.component)}"),
            format_count(row.parameters),
            format_bytes(row.bytes),
            share(row.bytes, whole),
        )
    elements = sum(row.parameters for row in rows)
    total = (format_count(elements), format_bytes(whole), share(whole, whole))
    made.add_row("Total", *total, style="bold")
    if elements != model.parameters_total:
        made.add_row("Counted as the model's parameters", format_count(model.parameters_total))
    return made


def _lists(model: ModelSpec) -> Iterator[RenderableType]:
    if model.defaults:
        filled = (
            Text(clean(f"{default.field} = {default.value} ({default.source})"))
            for default in model.defaults
        )
        yield spaced(items("Filled in, because config.json leaves it out", filled))
    if model.notes:
        yield spaced(items("Notes", (Text(clean(note)) for note in model.notes)))
    yield spaced(items("Sources", (Text(clean(source)) for source in _sources(model))))


def _sources(model: ModelSpec) -> Iterator[str]:
    revision = f", revision {model.revision}" if model.revision else ""
    yield f"configuration: {model.source}{revision}"
    rule = model.images
    if rule is not None:
        assumed = f"; without preprocessor_config.json: {', '.join(rule.unstated)}"
        yield f"tokens of an image: {rule.source}{assumed if rule.unstated else ''}"
    stated = model.checkpoint
    if stated is not None:
        figures = [
            f"{format_bytes(stated.total_bytes)} of tensors" if stated.total_bytes else "",
            counted(stated.parameters, "element") if stated.parameters else "",
        ]
        known = ", ".join(figure for figure in figures if figure)
        yield f"checkpoint: {known + ', ' if known else ''}by {stated.source}"
