"""From facts to a `ModelSpec`: find the family, let it read, add what all families share."""

from __future__ import annotations

from typing import NamedTuple

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.checkpoint import Inventory, take_inventory
from kvplan.architectures.context import Context, read_context
from kvplan.architectures.dtypes import read_dtype
from kvplan.architectures.family import find_family
from kvplan.architectures.fields import Fields
from kvplan.architectures.gguf import read_gguf
from kvplan.architectures.heads import find_head, without_head
from kvplan.architectures.images.table import read_image_rule
from kvplan.architectures.origin import class_source
from kvplan.architectures.quantization.scheme import Quantized
from kvplan.architectures.quantization.table import apply_quantization
from kvplan.architectures.rotary import read_rotary
from kvplan.architectures.wrapped import read_anatomy
from kvplan.errors import InputError
from kvplan.models.facts import ModelFacts
from kvplan.models.formats import PLAIN, Dtype
from kvplan.models.images.rules import AnyImageRule
from kvplan.models.spec import FilledDefault, ModelSpec, RotaryTable

_MOST_MODULES = 64
# A hundred times the largest model there is; more is a slip in a field.
_MOST_PARAMETERS = 10**15


class _Found(NamedTuple):
    """What was concluded about one model, step by step."""

    model_type: str
    architecture: str
    anatomy: Anatomy
    context: Context
    rotary: tuple[RotaryTable, ...]
    quantized: Quantized
    dtype: Dtype
    inventory: Inventory
    defaults: tuple[FilledDefault, ...]
    images: AnyImageRule | None
    prediction_modules: int | None


def read_model(facts: ModelFacts) -> ModelSpec:
    """What a model stores, concluded from its configuration and, where known, its checkpoint.

    Raises:
        NotModelledError: a family, an architecture or a quantization scheme that is not modelled.
        InputError: a configuration that is malformed or contradicts itself.
    """
    if facts.gguf:
        return read_gguf(facts)
    model_type, architecture, family = find_family(facts)
    fields = Fields(facts.config, where=facts.source, source=class_source(family.folder))
    anatomy, text, decoder = read_anatomy(fields, family)
    head = None if architecture in family.classes else find_head(architecture, family.classes[0])
    if head is not None:
        anatomy = without_head(anatomy, head(fields, anatomy.hidden_size))
    context = read_context(text, default=decoder.context, scaled=decoder.scaled)
    quantized = apply_quantization(
        fields, facts.quantization, anatomy.weights, measured=bool(facts.tensors)
    )
    dtype = read_dtype((fields, text), facts, quantized.weights, quantized.name)
    inventory = take_inventory(facts, anatomy, quantized.weights, PLAIN[dtype])
    if facts.tensors and not inventory.is_exact:
        # The files do not give the sizes after all: the scheme has to be one that is modelled.
        apply_quantization(fields, facts.quantization, anatomy.weights)
    spec = _spec(
        facts,
        _Found(
            model_type=model_type,
            architecture=architecture,
            anatomy=anatomy,
            context=context,
            rotary=read_rotary(text, anatomy.layers, context.maximum),
            quantized=quantized,
            dtype=dtype,
            inventory=inventory,
            defaults=fields.filled,
            images=read_image_rule(model_type, fields, facts.processor, facts.source),
            prediction_modules=_prediction_modules(text),
        ),
    )
    _check_size(spec)
    return spec


def _check_size(spec: ModelSpec) -> None:
    """Fields are bounded one by one; their product tells a slip in one of them."""
    if spec.parameters_total > _MOST_PARAMETERS:
        raise InputError(
            f"{spec.id} would have {spec.parameters_total:.1e} parameters by its configuration.",
            hint="A hidden size, a number of layers or of experts is too large by far.",
            location=spec.source,
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
        rotary=found.rotary,
        layers=anatomy.layers,
        tied_embeddings=anatomy.tied,
        weights=found.inventory.weights,
        quantization=found.quantized.name,
        kv_scheme=found.quantized.kv_scheme,
        draft=anatomy.draft,
        checkpoint=found.inventory.checkpoint,
        images=found.images,
        prediction_modules=found.prediction_modules,
        defaults=found.defaults,
        notes=facts.notes + anatomy.notes + found.inventory.notes + _context_note(context),
    )


def _prediction_modules(text: Fields) -> int | None:
    """Modules for multi-token prediction, under either name; 0 is none."""
    for name in ("num_nextn_predict_layers", "mtp_num_hidden_layers"):
        stated = text.optional_integer(name, least=0, most=_MOST_MODULES)
        if stated is not None:
            return stated or None
    return None


def _context_note(context: Context) -> tuple[str, ...]:
    if context.extended is None:
        return ()
    sentence = (
        f"The model was trained on {context.maximum:,} tokens and reaches"
        f" {context.extended:,} by rope scaling ({context.rope_scaling})."
    )
    return (sentence,)
