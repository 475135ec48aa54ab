"""ModelFacts: what the outside world states about a model, before anything is concluded.

`kvplan.sources` fills it, `kvplan.architectures` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True, slots=True)
class TensorHeader:
    """One tensor as the header of a safetensors or GGUF file states it.

    Large models have 100,000 of them, so it is none of pydantic's models.

    Attributes:
        dtype: The header's own type name: ``BF16``, ``F8_E4M3``, ``U8``, ``q4_K``.
        shape: As stored: packed types count containers, not elements.
        size: Bytes on disk.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int


class ModelFacts(BaseModel):
    """Configuration and checkpoint of one model, as read.

    Attributes:
        id: As the user or the Hub names it.
        revision: The resolved commit, or None.
        source: Where ``config`` was read, for people.
        config: ``config.json``, parsed and otherwise untouched; of a GGUF file its metadata.
        gguf: The facts come from a GGUF file.
        quantization: ``hf_quant_config.json``, or None.
        processor: ``preprocessor_config.json``, or ``processor_config.json`` that holds the same;
            None where neither is at hand.
        tensors: The headers of all weight files, or None if they were not read.
        checkpoint_bytes: Tensor bytes over all files by headers, an index or a sourced spec, or
            None.
        checkpoint_parameters: Elements over all files as a sourced spec states them, or None.
        checkpoint_source: Where ``tensors`` or the two figures come from.
        license: The licence as the model's card states it, or None.
        license_source: Where that is stated.
        notes: What could not be had, as sentences.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    id: str
    revision: str | None = None
    source: str
    config: dict[str, Any]
    gguf: bool = False
    quantization: dict[str, Any] | None = None
    processor: dict[str, Any] | None = None
    tensors: tuple[TensorHeader, ...] | None = None
    checkpoint_bytes: int | None = None
    checkpoint_parameters: int | None = None
    checkpoint_source: str | None = None
    license: str | None = None
    license_source: str | None = None
    notes: tuple[str, ...] = ()
