"""The keys of a configuration that decide what is concluded from it; the others are left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kvplan.architectures.reader import read_model
from kvplan.errors import KvplanError, NotModelledError
from kvplan.models.facts import ModelFacts

Config = dict[str, Any]
_Test = Callable[[Config], bool]

# What a reader looks for first. Where two keys say the same, the one further up is kept.
_FIRST = (
    "model_type",
    "architectures",
    "dtype",
    "torch_dtype",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "tie_word_embeddings",
)
# They name the family and the class, whatever is concluded from one of them alone.
_NAMES = ("model_type", "architectures")
_RANKS = {name: rank for rank, name in enumerate(_FIRST)}
_QUANTIZATION = "quantization_config"
_LAYER_NUMBER = re.compile(r"(?<=layers\.)\d+(?=\.)", re.ASCII)
# Wrappers nest twice (a thinker's text part), and one deeper holds settings of a rope.
_DEEPEST = 4
# A longer part is a table of modules, of which every line counts: it stays as it is, or goes.
_LONGEST_PART = 100


def without_headers(facts: ModelFacts) -> ModelFacts:
    """The same facts as a file of a few keys can state them.

    Headers become the two figures that they add up to, and the type they are of; the settings of
    ``hf_quant_config.json`` go where ``config.json`` has such settings.

    Raises:
        NotModelledError: see `read_model`; also a scheme whose settings can't be moved.
        InputError: see `read_model`.
    """
    measured = read_model(facts)
    known = measured.checkpoint
    plain = facts.model_copy(
        update={
            "tensors": None,
            "notes": (),
            "checkpoint_bytes": known.total_bytes if known else None,
            "checkpoint_parameters": known.parameters if known else None,
            "checkpoint_source": known.source if known else None,
        }
    )
    plain = _with_one_quantization(plain)
    if read_model(plain).dtype == measured.dtype:
        return plain
    return plain.model_copy(update={"config": {**plain.config, "dtype": measured.dtype}})


def _with_one_quantization(facts: ModelFacts) -> ModelFacts:
    alone = facts.model_copy(update={"quantization": None})
    if facts.quantization is None:
        return alone
    settings = {"quant_method": "modelopt", **facts.quantization}
    moved = alone.model_copy(update={"config": {**facts.config, _QUANTIZATION: settings}})
    wanted = read_model(facts)
    for choice in (alone, moved):
        if read_model(choice) == wanted:
            return choice
    raise NotModelledError(
        "The settings in hf_quant_config.json can't be stated in a config.json.",
        hint="Write the model spec by hand, with a quantization_config.",
        location=facts.source,
    )


def essential_config(facts: ModelFacts) -> Config:
    """The configuration without the keys that change nothing that is concluded from it.

    A key is tried by leaving it out: it stays if the model that is read then is another one, or
    if a default has to stand in for it. Nested parts are tried whole, then key by key. Names of
    modules that differ by the layer's number only are written once, with ``*``.

    Args:
        facts: A configuration and perhaps a checkpoint's size, without headers.

    Raises:
        NotModelledError, InputError: see `read_model`.
    """
    whole = read_model(facts)

    def same(config: Config) -> bool:
        try:
            return read_model(facts.model_copy(update={"config": config})) == whole
        except KvplanError:
            return False

    config = _ordered(facts.config)
    return _reduced(_starred(config, same), same, depth=0)


def essential_processor(facts: ModelFacts) -> Config | None:
    """The keys of the processor's file that decide how many tokens an image takes, or None.

    Raises:
        NotModelledError, InputError: see `read_model`.
    """
    whole = read_model(facts)

    def same(processor: Config) -> bool:
        try:
            return read_model(facts.model_copy(update={"processor": processor})) == whole
        except KvplanError:
            return False

    return _reduced(facts.processor or {}, same, depth=1) or None


def _ordered(config: Mapping[str, Any]) -> Config:
    """Sizes first, the quantization last, the rest as it was; in nested parts likewise."""
    names = sorted(config, key=lambda name: _RANKS.get(name, len(_RANKS) + (name == _QUANTIZATION)))
    return {
        name: _ordered(config[name]) if isinstance(config[name], dict) else config[name]
        for name in names
    }


def _reduced(config: Config, same: _Test, depth: int) -> Config:
    tried = tuple(name for name in reversed(config) if depth or name not in _NAMES)
    config = _without(config, tried, same)
    for name, value in config.items():
        if isinstance(value, dict) and len(value) <= _LONGEST_PART and depth < _DEEPEST:
            config = _replaced(
                config, name, _reduced(value, _inside(config, name, same), depth + 1)
            )
    return config


def _without(config: Config, names: tuple[str, ...], same: _Test) -> Config:
    """Leaves out what changes nothing; many keys at once where none of them does."""
    gone = set(names)
    kept = {name: value for name, value in config.items() if name not in gone}
    if not names or same(kept):
        return kept
    if len(names) == 1:
        return config
    half = len(names) // 2
    return _without(_without(config, names[:half], same), names[half:], same)


def _inside(config: Config, name: str, same: _Test) -> _Test:
    """The same question about a nested part."""
    return lambda part: same(_replaced(config, name, part))


def _replaced(config: Config, name: str, value: Any) -> Config:
    return {**config, name: value}


def _starred(config: Config, same: _Test) -> Config:
    for name, value in config.items():
        short = _short(value)
        if short != value and same(_replaced(config, name, short)):
            config = _replaced(config, name, short)
        elif isinstance(value, dict):
            config = _replaced(config, name, _starred(value, _inside(config, name, same)))
    return config


def _short(value: Any) -> Any:
    """Names of modules, or a table by them, without the layer's number where that is all."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return list(dict.fromkeys(map(_any_layer, value)))
    if isinstance(value, dict):
        short = {_any_layer(name): item for name, item in value.items()}
        if all(short[_any_layer(name)] == item for name, item in value.items()):
            return short
    return value


def _any_layer(name: str) -> str:
    return _LAYER_NUMBER.sub("*", name)
