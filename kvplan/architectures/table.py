"""Which function reads which ``model_type``: one literal table.

To add a family: one file beside this one, one row here, one golden configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.bloom import bloom
from kvplan.architectures.cohere import cohere, cohere2
from kvplan.architectures.deepseek import deepseek_v2, deepseek_v3, glm4_moe_lite
from kvplan.architectures.falcon import falcon
from kvplan.architectures.fields import Fields
from kvplan.architectures.gemma import gemma, gemma2, gemma3_text
from kvplan.architectures.glm4_moe import glm4_moe
from kvplan.architectures.gpt2 import gpt2
from kvplan.architectures.gpt_neox import gpt_neox
from kvplan.architectures.gpt_oss import gpt_oss
from kvplan.architectures.llama import (
    ernie4_5,
    granite,
    llama,
    ministral3,
    mistral,
    seed_oss,
    smollm3,
)
from kvplan.architectures.minimax_m2 import minimax_m2
from kvplan.architectures.mixtral import mixtral
from kvplan.architectures.multimodal import gemma3, mistral3
from kvplan.architectures.olmo import olmo, olmo2, olmo3
from kvplan.architectures.olmoe import olmoe
from kvplan.architectures.opt import opt
from kvplan.architectures.phi import phi, phi3
from kvplan.architectures.qwen import qwen2, qwen2_moe, qwen3, qwen3_moe
from kvplan.architectures.stablelm import stablelm
from kvplan.architectures.starcoder2 import starcoder2


class Family(NamedTuple):
    """How one ``model_type`` is read.

    Attributes:
        build: Turns the fields into an `Anatomy`.
        folder: Where transformers keeps the class and its defaults.
        classes: Names in ``architectures`` that are this decoder and nothing more.
        context: Class default of the longest context, or None if the class has none.
        text: Name of the nested part that describes the decoder, or None.
        scaled: Lengths are stated after rope scaling, whatever its type.
    """

    build: Callable[[Fields], Anatomy]
    folder: str
    classes: tuple[str, ...]
    context: int | None
    text: str | None = None
    scaled: bool = False


FAMILIES: dict[str, Family] = {
    "bloom": Family(bloom, "bloom", ("BloomForCausalLM",), None),
    "cohere": Family(cohere, "cohere", ("CohereForCausalLM",), 8192),
    "cohere2": Family(cohere2, "cohere2", ("Cohere2ForCausalLM",), 8192),
    "deepseek_v2": Family(deepseek_v2, "deepseek_v2", ("DeepseekV2ForCausalLM",), 2048),
    "deepseek_v3": Family(deepseek_v3, "deepseek_v3", ("DeepseekV3ForCausalLM",), 4096),
    "ernie4_5": Family(ernie4_5, "ernie4_5", ("Ernie4_5ForCausalLM",), 131_072),
    "falcon": Family(falcon, "falcon", ("FalconForCausalLM",), 2048),
    "gemma": Family(gemma, "gemma", ("GemmaForCausalLM",), 8192),
    "gemma2": Family(gemma2, "gemma2", ("Gemma2ForCausalLM",), 8192),
    "gemma3": Family(
        gemma3, "gemma3", ("Gemma3ForConditionalGeneration",), 131_072, "text_config", scaled=True
    ),
    "gemma3_text": Family(gemma3_text, "gemma3", ("Gemma3ForCausalLM",), 131_072, scaled=True),
    "glm4_moe": Family(glm4_moe, "glm4_moe", ("Glm4MoeForCausalLM",), 131_072),
    "glm4_moe_lite": Family(glm4_moe_lite, "glm4_moe_lite", ("Glm4MoeLiteForCausalLM",), 202_752),
    "gpt2": Family(gpt2, "gpt2", ("GPT2LMHeadModel",), 1024),
    "gpt_neox": Family(gpt_neox, "gpt_neox", ("GPTNeoXForCausalLM",), 2048),
    "gpt_oss": Family(gpt_oss, "gpt_oss", ("GptOssForCausalLM",), 131_072),
    "granite": Family(granite, "granite", ("GraniteForCausalLM",), 2048),
    # Kimi K2 keeps its own type but names DeepSeek V3's class.
    "kimi_k2": Family(deepseek_v3, "deepseek_v3", ("DeepseekV3ForCausalLM",), 4096),
    "llama": Family(llama, "llama", ("LlamaForCausalLM", "LLaMAForCausalLM"), 2048),
    "minimax_m2": Family(minimax_m2, "minimax_m2", ("MiniMaxM2ForCausalLM",), 196_608),
    "ministral3": Family(
        ministral3, "ministral3", ("Ministral3ForCausalLM", "MistralForCausalLM"), 262_144
    ),
    "mistral": Family(mistral, "mistral", ("MistralForCausalLM",), 131_072),
    "mistral3": Family(
        mistral3, "mistral3", ("Mistral3ForConditionalGeneration",), None, "text_config"
    ),
    "mixtral": Family(mixtral, "mixtral", ("MixtralForCausalLM",), 131_072),
    "olmo": Family(olmo, "olmo", ("OlmoForCausalLM",), 2048),
    "olmo2": Family(olmo2, "olmo2", ("Olmo2ForCausalLM",), 2048),
    "olmo3": Family(olmo3, "olmo3", ("Olmo3ForCausalLM",), 2048),
    "olmoe": Family(olmoe, "olmoe", ("OlmoeForCausalLM",), 4096),
    "opt": Family(opt, "opt", ("OPTForCausalLM",), 2048),
    "phi": Family(phi, "phi", ("PhiForCausalLM",), 2048),
    "phi3": Family(phi3, "phi3", ("Phi3ForCausalLM",), 4096),
    "qwen2": Family(qwen2, "qwen2", ("Qwen2ForCausalLM",), 32_768),
    "qwen2_moe": Family(qwen2_moe, "qwen2_moe", ("Qwen2MoeForCausalLM",), 32_768),
    "qwen3": Family(qwen3, "qwen3", ("Qwen3ForCausalLM",), 32_768),
    "qwen3_moe": Family(qwen3_moe, "qwen3_moe", ("Qwen3MoeForCausalLM",), 32_768),
    "seed_oss": Family(seed_oss, "seed_oss", ("SeedOssForCausalLM",), 524_288),
    "smollm3": Family(smollm3, "smollm3", ("SmolLM3ForCausalLM",), 32_768),
    "stablelm": Family(stablelm, "stablelm", ("StableLmForCausalLM",), 4096),
    "starcoder2": Family(starcoder2, "starcoder2", ("Starcoder2ForCausalLM",), 4096),
}
