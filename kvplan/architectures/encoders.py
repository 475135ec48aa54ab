"""Types of models that keep no KV cache at all: encoders, which read their input at once."""

from __future__ import annotations

# The types of vLLM v0.33.0 vllm/model_executor/models/registry.py that are encoders only, and
# those of transformers v5.24.0 whose classes have no cache.
ENCODERS = frozenset(
    {
        "albert",
        "bert",
        "camembert",
        "canine",
        "clip",
        "deberta",
        "deberta-v2",
        "distilbert",
        "dpr",
        "electra",
        "esm",
        "eurobert",
        "gte",
        "hubert",
        "ibert",
        "longformer",
        "modernbert",
        "mpnet",
        "nomic_bert",
        "nystromformer",
        "rembert",
        "roberta",
        "roformer",
        "siglip",
        "squeezebert",
        "wav2vec2",
        "wav2vec2-bert",
        "wavlm",
        "xlm-roberta",
        "xlm-roberta-xl",
        "xmod",
    }
)
