"""Which function reads which ``model_type``: one literal table.

To add a family: one file beside this one, one row here, one golden configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.apertus import apertus
from kvplan.architectures.arcee import afmoe, arcee
from kvplan.architectures.baichuan import baichuan, orion, xverse
from kvplan.architectures.bailing import bailing_hybrid, bailing_moe
from kvplan.architectures.bamba import bamba, falcon_h1
from kvplan.architectures.bart import bart, marian, mbart, pegasus
from kvplan.architectures.biogpt import biogpt
from kvplan.architectures.bitnet import bitnet
from kvplan.architectures.bloom import bloom
from kvplan.architectures.chatglm import chatglm
from kvplan.architectures.cohere import cohere, cohere2
from kvplan.architectures.cohere_moe import cohere2_moe
from kvplan.architectures.dbrx import dbrx
from kvplan.architectures.deepseek import deepseek_v2, deepseek_v3, glm4_moe_lite
from kvplan.architectures.deepseek_moe import deepseek
from kvplan.architectures.deepseek_v4 import deepseek_v4
from kvplan.architectures.deepseek_v32 import deepseek_v32, glm_moe_dsa
from kvplan.architectures.dots1 import dots1
from kvplan.architectures.ernie_moe import ernie4_5_moe
from kvplan.architectures.exaone import exaone, exaone4, exaone_moe
from kvplan.architectures.falcon import falcon, refined_web
from kvplan.architectures.fields import Fields
from kvplan.architectures.flex_olmo import flex_olmo
from kvplan.architectures.gemma import gemma, gemma2, gemma3_text
from kvplan.architectures.gemma3n import gemma3n_text
from kvplan.architectures.gemma4 import gemma4_text
from kvplan.architectures.gla import gla
from kvplan.architectures.glm import glm, glm4
from kvplan.architectures.glm4_moe import glm4_moe
from kvplan.architectures.gpt2 import gpt2
from kvplan.architectures.gpt_bigcode import gpt_bigcode
from kvplan.architectures.gpt_neox import gpt_neox, gpt_neox_reward
from kvplan.architectures.gpt_oss import gpt_oss
from kvplan.architectures.gptj import codegen, gptj
from kvplan.architectures.granite_moe import granitemoe, granitemoehybrid, granitemoeshared
from kvplan.architectures.granite_swa import granite_swa, granitemoe_swa
from kvplan.architectures.hunyuan import hunyuan, hunyuan_dense, hunyuan_moe, hy_v3
from kvplan.architectures.hyperclovax import hyperclovax
from kvplan.architectures.internlm import internlm, internlm2, internlm3
from kvplan.architectures.jamba import jamba
from kvplan.architectures.jetmoe import jetmoe
from kvplan.architectures.kimi_linear import kimi_linear
from kvplan.architectures.laguna import laguna
from kvplan.architectures.lfm2 import lfm2, lfm2_moe
from kvplan.architectures.lightning import minimax, minimax_text_01
from kvplan.architectures.llama import (
    ernie4_5,
    granite,
    llama,
    ministral3,
    mistral,
    seed_oss,
    smollm3,
)
from kvplan.architectures.llama4 import llama4_text
from kvplan.architectures.mamba import falcon_mamba, mamba
from kvplan.architectures.mamba2 import mamba2
from kvplan.architectures.mimo import mimo, mimo_v2
from kvplan.architectures.minicpm import minicpm
from kvplan.architectures.minicpm3 import minicpm3
from kvplan.architectures.minimax_m2 import minimax_m2
from kvplan.architectures.minimax_m3 import minimax_m3
from kvplan.architectures.minimind import minimind
from kvplan.architectures.mixtral import mixtral
from kvplan.architectures.mllama import mllama
from kvplan.architectures.molmo import molmo
from kvplan.architectures.mpt import mpt
from kvplan.architectures.nemotron import nemotron
from kvplan.architectures.nemotron_h import nemotron_h
from kvplan.architectures.nemotron_nas import decilm, nemotron_nas
from kvplan.architectures.olmo import olmo, olmo2, olmo3
from kvplan.architectures.olmo_hybrid import olmo_hybrid
from kvplan.architectures.olmoe import olmoe
from kvplan.architectures.openelm import openelm
from kvplan.architectures.opt import opt
from kvplan.architectures.pangu import pangu_embedded
from kvplan.architectures.persimmon import persimmon
from kvplan.architectures.phi import phi, phi3
from kvplan.architectures.phi3_small import phi3_small
from kvplan.architectures.phi4_flash import phi4_flash
from kvplan.architectures.phi_old import mixformer, phi_msft
from kvplan.architectures.phimoe import phimoe
from kvplan.architectures.qwen import qwen2, qwen2_moe, qwen3, qwen3_moe
from kvplan.architectures.qwen3_next import qwen3_5_moe_text, qwen3_5_text, qwen3_next
from kvplan.architectures.qwen_v1 import qwen_v1
from kvplan.architectures.rugpt3xl import rugpt3xl
from kvplan.architectures.rwkv import rwkv, rwkv5, rwkv6
from kvplan.architectures.rwkv7 import rwkv7
from kvplan.architectures.solar import solar, solar_open
from kvplan.architectures.spark import spark2_5
from kvplan.architectures.stablelm import stablelm
from kvplan.architectures.starcoder2 import starcoder2
from kvplan.architectures.step import step3_text, step3p5
from kvplan.architectures.step1 import step1
from kvplan.architectures.t5 import mt5, t5, umt5
from kvplan.architectures.whisper import whisper
from kvplan.architectures.zamba2 import zamba2


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
    "PanguEmbedded": Family(
        pangu_embedded,
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/openpangu.py",
        ("PanguEmbeddedForCausalLM",),
        None,
    ),
    "RefinedWeb": Family(
        refined_web,
        "vllm-project/vllm@v0.33.0:vllm/transformers_utils/configs/falcon.py",
        ("RWForCausalLM", "FalconForCausalLM"),
        None,
    ),
    "RefinedWebModel": Family(
        refined_web,
        "vllm-project/vllm@v0.33.0:vllm/transformers_utils/configs/falcon.py",
        ("RWForCausalLM", "FalconForCausalLM"),
        None,
    ),
    "afmoe": Family(afmoe, "afmoe", ("AfmoeForCausalLM",), 16_384),
    "apertus": Family(apertus, "apertus", ("ApertusForCausalLM",), 65_536),
    "arcee": Family(arcee, "arcee", ("ArceeForCausalLM",), 4096),
    "baichuan": Family(
        baichuan,
        "vllm-project/vllm@6b065994:vllm/model_executor/models/baichuan.py",
        ("BaichuanForCausalLM", "BaiChuanForCausalLM"),
        None,
    ),
    "bailing_hybrid": Family(
        bailing_hybrid,
        "bailing_hybrid",
        ("BailingMoeV3ForCausalLM", "BailingHybridForCausalLM", "BailingMoeV2_5ForCausalLM"),
        262_144,
    ),
    "bailing_moe": Family(
        bailing_moe,
        "inclusionAI/Ling-V2@efee9bb7bc:models/modeling_bailing_moe_v2.py",
        ("BailingMoeForCausalLM", "BailingMoeV2ForCausalLM"),
        None,
    ),
    "bailing_moe_v2": Family(
        bailing_moe,
        "inclusionAI/Ling-V2@efee9bb7bc:models/modeling_bailing_moe_v2.py",
        ("BailingMoeV2ForCausalLM",),
        None,
    ),
    "bamba": Family(bamba, "bamba", ("BambaForCausalLM",), 262_144),
    "bart": Family(bart, "bart", ("BartForConditionalGeneration",), 1024),
    "biogpt": Family(biogpt, "biogpt", ("BioGptForCausalLM",), 1024),
    "bitnet": Family(bitnet, "bitnet", ("BitNetForCausalLM", "BitnetForCausalLM"), 2048),
    "bloom": Family(bloom, "bloom", ("BloomForCausalLM",), None),
    "chatglm": Family(
        chatglm,
        "vllm-project/vllm@v0.33.0:vllm/transformers_utils/configs/chatglm.py",
        ("ChatGLMModel", "ChatGLMForConditionalGeneration"),
        None,
    ),
    "codegen": Family(codegen, "codegen", ("CodeGenForCausalLM",), 2048),
    "cohere": Family(cohere, "cohere", ("CohereForCausalLM",), 8192),
    "cohere2": Family(cohere2, "cohere2", ("Cohere2ForCausalLM",), 8192),
    "cohere2_moe": Family(cohere2_moe, "cohere2_moe", ("Cohere2MoeForCausalLM",), 8192),
    "dbrx": Family(dbrx, "dbrx", ("DbrxForCausalLM",), 2048),
    "deci": Family(
        decilm,
        "vllm-project/vllm@fc5726d3:vllm/model_executor/models/decilm.py",
        ("DeciLMForCausalLM",),
        None,
    ),
    "deepseek": Family(deepseek, "deepseek_v2", ("DeepseekForCausalLM",), None),
    "deepseek_ref": Family(deepseek_v4, "deepseek_v4", ("DeepseekV4ForCausalLM",), 1_048_576),
    "deepseek_v2": Family(deepseek_v2, "deepseek_v2", ("DeepseekV2ForCausalLM",), 2048),
    "deepseek_v3": Family(deepseek_v3, "deepseek_v3", ("DeepseekV3ForCausalLM",), 4096),
    "deepseek_v32": Family(deepseek_v32, "deepseek_v32", ("DeepseekV32ForCausalLM",), 163_840),
    "deepseek_v4": Family(deepseek_v4, "deepseek_v4", ("DeepseekV4ForCausalLM",), 1_048_576),
    "dots1": Family(dots1, "dots1", ("Dots1ForCausalLM",), 2048),
    "ernie4_5": Family(ernie4_5, "ernie4_5", ("Ernie4_5ForCausalLM",), 131_072),
    "ernie4_5_moe": Family(ernie4_5_moe, "ernie4_5_moe", ("Ernie4_5_MoeForCausalLM",), 131_072),
    "exaone": Family(exaone, "exaone", ("ExaoneForCausalLM",), 4096),
    "exaone4": Family(exaone4, "exaone4", ("Exaone4ForCausalLM",), 2048),
    "exaone_moe": Family(
        exaone_moe, "exaone_moe", ("ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM"), 2048
    ),
    "falcon": Family(falcon, "falcon", ("FalconForCausalLM",), 2048),
    "falcon_h1": Family(falcon_h1, "falcon_h1", ("FalconH1ForCausalLM",), 8192),
    "falcon_mamba": Family(falcon_mamba, "falcon_mamba", ("FalconMambaForCausalLM",), None),
    "flex_olmo": Family(flex_olmo, "flex_olmo", ("FlexOlmoForCausalLM",), 4096),
    "gemma": Family(gemma, "gemma", ("GemmaForCausalLM",), 8192),
    "gemma2": Family(gemma2, "gemma2", ("Gemma2ForCausalLM",), 8192),
    "gemma3_text": Family(gemma3_text, "gemma3", ("Gemma3ForCausalLM",), 131_072, scaled=True),
    "gemma3n_text": Family(gemma3n_text, "gemma3n", ("Gemma3nForCausalLM",), 32_768),
    "gemma4_text": Family(gemma4_text, "gemma4", ("Gemma4ForCausalLM",), 131_072),
    "gla": Family(
        gla,
        "fla-org/flash-linear-attention@038bdb3c65:fla/models/gla/configuration_gla.py",
        ("GLAForCausalLM",),
        2048,
    ),
    "glm": Family(glm, "glm", ("GlmForCausalLM",), 131_072),
    "glm4": Family(glm4, "glm4", ("Glm4ForCausalLM",), 131_072),
    "glm4_moe": Family(glm4_moe, "glm4_moe", ("Glm4MoeForCausalLM",), 131_072),
    "glm4_moe_lite": Family(glm4_moe_lite, "glm4_moe_lite", ("Glm4MoeLiteForCausalLM",), 202_752),
    "glm_moe_dsa": Family(glm_moe_dsa, "glm_moe_dsa", ("GlmMoeDsaForCausalLM",), 202_752),
    "gpt2": Family(gpt2, "gpt2", ("GPT2LMHeadModel",), 1024),
    "gpt_bigcode": Family(gpt_bigcode, "gpt_bigcode", ("GPTBigCodeForCausalLM",), 1024),
    "gpt_neox": Family(gpt_neox, "gpt_neox", ("GPTNeoXForCausalLM",), 2048),
    "gpt_neox_reward_model": Family(gpt_neox_reward, "gpt_neox", ("GPTNeoXRewardModel",), 2048),
    "gpt_oss": Family(gpt_oss, "gpt_oss", ("GptOssForCausalLM",), 131_072),
    "gptj": Family(gptj, "gptj", ("GPTJForCausalLM",), 2048),
    "granite": Family(granite, "granite", ("GraniteForCausalLM",), 2048),
    "granite_swa": Family(granite_swa, "granite_swa", ("GraniteSWAForCausalLM",), 8192),
    "granitemoe": Family(granitemoe, "granitemoe", ("GraniteMoeForCausalLM",), 2048),
    "granitemoe_swa": Family(granitemoe_swa, "granitemoe_swa", ("GraniteMoeSWAForCausalLM",), 2048),
    "granitemoehybrid": Family(
        granitemoehybrid, "granitemoehybrid", ("GraniteMoeHybridForCausalLM",), 2048
    ),
    "granitemoeshared": Family(
        granitemoeshared, "granitemoeshared", ("GraniteMoeSharedForCausalLM",), 2048
    ),
    "hunyuan": Family(
        hunyuan, "hunyuan_v1_moe", ("HunYuanMoEV1ForCausalLM", "HunYuanForCausalLM"), 2048
    ),
    "hunyuan_v1_dense": Family(
        hunyuan_dense, "hunyuan_v1_dense", ("HunYuanDenseV1ForCausalLM",), 2048
    ),
    "hunyuan_v1_moe": Family(hunyuan_moe, "hunyuan_v1_moe", ("HunYuanMoEV1ForCausalLM",), 2048),
    "hy_v3": Family(hy_v3, "hy_v3", ("HYV3ForCausalLM",), 131_072),
    "hyperclovax": Family(hyperclovax, "hyperclovax", ("HyperCLOVAXForCausalLM",), 2048),
    "internlm": Family(
        internlm,
        "vllm-project/vllm@6916df80:vllm/model_executor/models/internlm.py",
        ("InternLMForCausalLM",),
        None,
    ),
    "internlm2": Family(
        internlm2,
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/internlm2.py",
        ("InternLM2ForCausalLM",),
        None,
    ),
    "internlm3": Family(internlm3, "internlm3", ("InternLM3ForCausalLM",), 32_768),
    "jamba": Family(jamba, "jamba", ("JambaForCausalLM",), 262_144),
    "jetmoe": Family(jetmoe, "jetmoe", ("JetMoeForCausalLM",), 4096),
    # Kimi K2 keeps its own type but names DeepSeek V3's class.
    "kimi_k2": Family(deepseek_v3, "deepseek_v3", ("DeepseekV3ForCausalLM",), 4096),
    "kimi_linear": Family(kimi_linear, "kimi_linear", ("KimiLinearForCausalLM",), 1_048_576),
    "laguna": Family(laguna, "laguna", ("LagunaForCausalLM",), 131_072),
    "lfm2": Family(lfm2, "lfm2", ("Lfm2ForCausalLM",), 128_000),
    "lfm2_moe": Family(lfm2_moe, "lfm2_moe", ("Lfm2MoeForCausalLM",), 128_000),
    "llama": Family(llama, "llama", ("LlamaForCausalLM", "LLaMAForCausalLM"), 2048),
    "llama4_text": Family(llama4_text, "llama4", ("Llama4ForCausalLM",), 131_072),
    "mamba": Family(mamba, "mamba", ("MambaForCausalLM",), None),
    "mamba2": Family(mamba2, "mamba2", ("Mamba2ForCausalLM",), None),
    "marian": Family(marian, "marian", ("MarianMTModel",), 1024),
    "mbart": Family(mbart, "mbart", ("MBartForConditionalGeneration",), 1024),
    "mimo": Family(
        mimo,
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/mimo.py",
        ("MiMoForCausalLM",),
        None,
    ),
    "mimo_v2": Family(mimo_v2, "mimo_v2_flash", ("MiMoV2ForCausalLM",), 131_072),
    "mimo_v2_flash": Family(mimo_v2, "mimo_v2_flash", ("MiMoV2FlashForCausalLM",), 131_072),
    "minicpm": Family(
        minicpm,
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/minicpm.py",
        ("MiniCPMForCausalLM",),
        None,
    ),
    "minicpm3": Family(minicpm3, "minicpm3", ("MiniCPM3ForCausalLM",), 32_768),
    "minimax": Family(minimax, "minimax", ("MiniMaxForCausalLM",), 131_072),
    "minimax_m1": Family(minimax_text_01, "minimax", ("MiniMaxM1ForCausalLM",), None),
    "minimax_m2": Family(minimax_m2, "minimax_m2", ("MiniMaxM2ForCausalLM",), 196_608),
    "minimax_m3": Family(
        minimax_m3, "minimax_m3_vl", ("MiniMaxM3ForCausalLM", "MiniMaxM3SparseForCausalLM"), 524_288
    ),
    "minimax_m3_vl_text": Family(minimax_m3, "minimax_m3_vl", ("MiniMaxM3VLForCausalLM",), 524_288),
    "minimax_text_01": Family(minimax_text_01, "minimax", ("MiniMaxText01ForCausalLM",), None),
    "minimind": Family(
        minimind, "jingyaogong/minimind@02297df3:model/model.py", ("MiniMindLM",), None
    ),
    "ministral3": Family(
        ministral3, "ministral3", ("Ministral3ForCausalLM", "MistralForCausalLM"), 262_144
    ),
    "mistral": Family(mistral, "mistral", ("MistralForCausalLM",), 131_072),
    "mixformer-sequential": Family(
        mixformer,
        "4g/kaggle_science_llm@7239c176:modeling_mixformer_sequential.py",
        ("MixFormerSequentialForCausalLM",),
        None,
    ),
    "mixtral": Family(mixtral, "mixtral", ("MixtralForCausalLM",), 131_072),
    "mllama": Family(mllama, "mllama", ("MllamaForConditionalGeneration",), 131_072, "text_config"),
    "molmo": Family(molmo, "molmo", ("MolmoForCausalLM",), None),
    "mpt": Family(mpt, "mpt", ("MPTForCausalLM", "MptForCausalLM"), 2048),
    "mt5": Family(mt5, "mt5", ("MT5ForConditionalGeneration",), None),
    "nemotron": Family(nemotron, "nemotron", ("NemotronForCausalLM",), 4096),
    "nemotron-nas": Family(
        nemotron_nas,
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/nemotron_nas.py",
        ("DeciLMForCausalLM",),
        None,
    ),
    "nemotron_h": Family(nemotron_h, "nemotron_h", ("NemotronHForCausalLM",), 4096),
    "olmo": Family(olmo, "olmo", ("OlmoForCausalLM",), 2048),
    "olmo2": Family(olmo2, "olmo2", ("Olmo2ForCausalLM",), 2048),
    "olmo3": Family(olmo3, "olmo3", ("Olmo3ForCausalLM",), 2048),
    "olmo_hybrid": Family(olmo_hybrid, "olmo_hybrid", ("OlmoHybridForCausalLM",), 65_536),
    "olmoe": Family(olmoe, "olmoe", ("OlmoeForCausalLM",), 4096),
    "openelm": Family(
        openelm,
        "ml-explore/mlx-lm@269906bf:mlx_lm/models/openelm.py",
        ("OpenELMForCausalLM",),
        None,
    ),
    "opt": Family(opt, "opt", ("OPTForCausalLM",), 2048),
    "orion": Family(
        orion,
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/orion.py",
        ("OrionForCausalLM",),
        None,
    ),
    "pegasus": Family(pegasus, "pegasus", ("PegasusForConditionalGeneration",), 1024),
    "persimmon": Family(persimmon, "persimmon", ("PersimmonForCausalLM",), 16_384),
    "phi": Family(phi, "phi", ("PhiForCausalLM",), 2048),
    "phi-msft": Family(
        phi_msft,
        "vllm-project/vllm@1baf87bf:vllm/model_executor/models/phi_1_5.py",
        ("PhiForCausalLM",),
        None,
    ),
    "phi3": Family(phi3, "phi3", ("Phi3ForCausalLM",), 4096),
    "phi3small": Family(
        phi3_small,
        "vllm-project/vllm@e233578c:vllm/model_executor/models/phi3_small.py",
        ("Phi3SmallForCausalLM",),
        None,
    ),
    "phi4flash": Family(
        phi4_flash,
        "NVIDIA/TensorRT-LLM@eedd4af3:tensorrt_llm/_torch/auto_deploy/models/custom/modeling_phi4flash.py",
        ("Phi4FlashForCausalLM",),
        4096,
    ),
    "phimoe": Family(phimoe, "phimoe", ("PhimoeForCausalLM", "PhiMoEForCausalLM"), 131_072),
    "qwen": Family(
        qwen_v1,
        "x1ngzai/Qwen-VL-Chat-Int4@1cd721a2:configuration_qwen.py",
        ("QWenLMHeadModel",),
        None,
    ),
    "qwen2": Family(qwen2, "qwen2", ("Qwen2ForCausalLM",), 32_768),
    "qwen2_moe": Family(qwen2_moe, "qwen2_moe", ("Qwen2MoeForCausalLM",), 32_768),
    "qwen3": Family(qwen3, "qwen3", ("Qwen3ForCausalLM",), 32_768),
    "qwen3_5_moe_text": Family(
        qwen3_5_moe_text,
        "qwen3_5_moe",
        ("Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration"),
        32_768,
    ),
    "qwen3_5_text": Family(
        qwen3_5_text, "qwen3_5", ("Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration"), 32_768
    ),
    "qwen3_moe": Family(qwen3_moe, "qwen3_moe", ("Qwen3MoeForCausalLM",), 32_768),
    "qwen3_next": Family(qwen3_next, "qwen3_next", ("Qwen3NextForCausalLM",), 32_768),
    "rugpt3xl": Family(
        rugpt3xl,
        "EvilFreelancer/rugpt3xl-convert@92259eba:modeling_rugpt3xl.py",
        ("RuGPT3XLForCausalLM",),
        2048,
    ),
    "rwkv": Family(rwkv, "rwkv", ("RwkvForCausalLM",), None),
    "rwkv5": Family(
        rwkv5,
        "mlc-ai/mlc-llm@01ced331a9:python/mlc_llm/model/rwkv5/rwkv5_model.py",
        ("RwkvForCausalLM", "Rwkv5ForCausalLM"),
        None,
    ),
    "rwkv6": Family(
        rwkv6,
        "mlc-ai/mlc-llm@01ced331a9:python/mlc_llm/model/rwkv6/rwkv6_model.py",
        ("Rwkv6ForCausalLM",),
        None,
    ),
    "rwkv7": Family(
        rwkv7,
        "fla-org/flash-linear-attention@0315a70ea5:fla/layers/rwkv7.py",
        ("RWKV7ForCausalLM",),
        None,
    ),
    "seed_oss": Family(seed_oss, "seed_oss", ("SeedOssForCausalLM",), 524_288),
    "smollm3": Family(smollm3, "smollm3", ("SmolLM3ForCausalLM",), 32_768),
    "solar": Family(
        solar,
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/solar.py",
        ("SolarForCausalLM",),
        None,
    ),
    "solar_open": Family(solar_open, "solar_open", ("SolarOpenForCausalLM",), 131_072),
    "spark2_5": Family(
        spark2_5,
        "XHToken/Spark-plugin@45a7d43a:src/vllm_spark2_5_plugin/spark2_5_config.py",
        ("Spark2_5ForCausalLM",),
        8192,
    ),
    "stablelm": Family(stablelm, "stablelm", ("StableLmForCausalLM",), 4096),
    "starcoder2": Family(starcoder2, "starcoder2", ("Starcoder2ForCausalLM",), 4096),
    "step1": Family(
        step1,
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/step1.py",
        ("Step1ForCausalLM",),
        None,
    ),
    "step3_text": Family(
        step3_text,
        "vllm-project/vllm@v0.33.0:vllm/transformers_utils/configs/step3_vl.py",
        ("Step3TextForCausalLM",),
        65_536,
    ),
    "step3p5": Family(step3p5, "step3p7", ("Step3p5ForCausalLM",), 128_000),
    "step3p7": Family(step3p5, "step3p7", ("Step3p7FlashForCausalLM",), 128_000),
    "t5": Family(t5, "t5", ("T5ForConditionalGeneration", "T5WithLMHeadModel"), None),
    "umt5": Family(umt5, "umt5", ("UMT5ForConditionalGeneration",), None),
    "whisper": Family(whisper, "whisper", ("WhisperForConditionalGeneration",), 448),
    "xverse": Family(
        xverse,
        "vllm-project/vllm@ae3d6121:vllm/model_executor/models/xverse.py",
        ("XverseForCausalLM",),
        None,
    ),
    "zamba2": Family(zamba2, "zamba2", ("Zamba2ForCausalLM",), 4096),
}
