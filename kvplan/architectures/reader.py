"""From facts to a `ModelSpec`: find the family, let it read, add what all families share."""

from __future__ import annotations

from typing import NamedTuple

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.checkpoint import Inventory, take_inventory
from kvplan.architectures.context import Context, read_context
from kvplan.architectures.dtypes import read_dtype
from kvplan.architectures.family import find_family
from kvplan.architectures.fields import Fields
from kvplan.architectures.origin import class_source
from kvplan.architectures.quantization.scheme import Quantized
from kvplan.architectures.quantization.table import apply_quantization
from kvplan.models.facts import ModelFacts
from kvplan.models.formats import PLAIN, Dtype
from kvplan.models.spec import FilledDefault, ModelSpec


class _Found(NamedTuple):
    """What was concluded about one model, step by step."""

    model_type: str
    architecture: str
    anatomy: Anatomy
    context: Context
    quantized: Quantized
    dtype: Dtype
    inventory: Inventory
    defaults: tuple[FilledDefault, ...]


def read_model(facts: ModelFacts) -> ModelSpec:
    """What a model stores, concluded from its configuration and, where known, its checkpoint.

    Raises:
        NotModelledError: a family, an architecture or a quantization scheme that is not modelled.
        InputError: a configuration that is malformed or contradicts itself.
    """
    model_type, architecture, family = find_family(facts)
    fields = Fields(facts.config, where=facts.source, source=class_source(family.folder))
    anatomy = family.build(fields)
    text = (fields.section(family.text) if family.text else None) or fields
    context = read_context(text, default=family.context, scaled=family.scaled)
    quantized = apply_quantization(fields, facts.quantization, anatomy.weights)
    dtype = read_dtype(fields, facts, quantized.weights, quantized.name)
    return _spec(
        facts,
        _Found(
            model_type=model_type,
            architecture=architecture,
            anatomy=anatomy,
            context=context,
            quantized=quantized,
            dtype=dtype,
            inventory=take_inventory(facts, anatomy, quantized.weights, PLAIN[dtype]),
            defaults=fields.filled,
        ),
    )


def _spec(facts: ModelFacts, found: _Found) -> ModelSpec:
    anatomy, context = found.anatomy, found.context
    return ModelSpec(
        id=facts.id,
        revision=facts.revision,
        model_type=found.model_type,
        architecture=found.architecture,
        source=facts.source,
        dtype=found.dtype,
        max_context=context.maximum,
        extended_context=context.extended,
        rope_scaling=context.rope_scaling,
        hidden_size=anatomy.hidden_size,
        vocab_size=anatomy.vocab_size,
        intermediate_size=anatomy.intermediate_size,
        attention_heads=anatomy.attention_heads,
        experts=anatomy.experts,
        experts_per_token=anatomy.experts_per_token,
        layers=anatomy.layers,
        tied_embeddings=anatomy.tied,
        weights=found.inventory.weights,
        quantization=found.quantized.name,
        kv_scheme=found.quantized.kv_scheme,
        checkpoint=found.inventory.checkpoint,
        defaults=found.defaults,
        notes=facts.notes + anatomy.notes + found.inventory.notes + _context_note(context),
    )


def _context_note(context: Context) -> tuple[str, ...]:
    if context.extended is None:
        return ()
    sentence = (
        f"The model was trained on {context.maximum:,} tokens and reaches"
        f" {context.extended:,} by rope scaling ({context.rope_scaling})."
    )
    return (sentence,)
