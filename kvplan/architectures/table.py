"""Which function reads which ``model_type``: one literal table.

To add a family: one file beside this one, one row here, one golden configuration.
"""

from __future__ import annotations

from typing import NamedTuple

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.fields import Fields
from kvplan.architectures.lazy import function


class Family(NamedTuple):
    """How one ``model_type`` is read.

    Attributes:
        reader: The function that turns the fields into an `Anatomy`, as `lazy` names it.
        folder: Where transformers keeps the class and its defaults.
        classes: Names in ``architectures`` that are this decoder and nothing more.
        context: Class default of the longest context, or None if the class has none.
        text: Name of the nested part that describes the decoder, or None.
        scaled: Lengths are stated after rope scaling, whatever its type.
    """

    reader: str
    folder: str
    classes: tuple[str, ...]
    context: int | None
    text: str | None = None
    scaled: bool = False

    def build(self, fields: Fields) -> Anatomy:
        """Reads a configuration.

        Raises:
            NotModelledError, InputError: see `read_anatomy`.
        """
        anatomy: Anatomy = function(self.reader)(fields)
        return anatomy


FAMILIES: dict[str, Family] = {
    "PanguEmbedded": Family(
        "pangu:pangu_embedded",
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/openpangu.py",
        ("PanguEmbeddedForCausalLM",),
        None,
    ),
    "RefinedWeb": Family(
        "falcon:refined_web",
        "vllm-project/vllm@v0.33.0:vllm/transformers_utils/configs/falcon.py",
        ("RWForCausalLM", "FalconForCausalLM"),
        None,
    ),
    "RefinedWebModel": Family(
        "falcon:refined_web",
        "vllm-project/vllm@v0.33.0:vllm/transformers_utils/configs/falcon.py",
        ("RWForCausalLM", "FalconForCausalLM"),
        None,
    ),
    "afmoe": Family("arcee:afmoe", "afmoe", ("AfmoeForCausalLM",), 16_384),
    "apertus": Family("apertus:apertus", "apertus", ("ApertusForCausalLM",), 65_536),
    "arcee": Family("arcee:arcee", "arcee", ("ArceeForCausalLM",), 4096),
    "baichuan": Family(
        "baichuan:baichuan",
        "vllm-project/vllm@6b065994:vllm/model_executor/models/baichuan.py",
        ("BaichuanForCausalLM", "BaiChuanForCausalLM"),
        None,
    ),
    "bailing_hybrid": Family(
        "bailing:bailing_hybrid",
        "bailing_hybrid",
        ("BailingMoeV3ForCausalLM", "BailingHybridForCausalLM", "BailingMoeV2_5ForCausalLM"),
        262_144,
    ),
    "bailing_moe": Family(
        "bailing:bailing_moe",
        "inclusionAI/Ling-V2@efee9bb7bc:models/modeling_bailing_moe_v2.py",
        ("BailingMoeForCausalLM", "BailingMoeV2ForCausalLM"),
        None,
    ),
    "bailing_moe_v2": Family(
        "bailing:bailing_moe",
        "inclusionAI/Ling-V2@efee9bb7bc:models/modeling_bailing_moe_v2.py",
        ("BailingMoeV2ForCausalLM",),
        None,
    ),
    "bamba": Family("bamba:bamba", "bamba", ("BambaForCausalLM",), 262_144),
    "bart": Family("bart:bart", "bart", ("BartForConditionalGeneration",), 1024),
    "biogpt": Family("biogpt:biogpt", "biogpt", ("BioGptForCausalLM",), 1024),
    "bitnet": Family("bitnet:bitnet", "bitnet", ("BitNetForCausalLM", "BitnetForCausalLM"), 2048),
    "bloom": Family("bloom:bloom", "bloom", ("BloomForCausalLM",), None),
    "chatglm": Family(
        "chatglm:chatglm",
        "vllm-project/vllm@v0.33.0:vllm/transformers_utils/configs/chatglm.py",
        ("ChatGLMModel", "ChatGLMForConditionalGeneration"),
        None,
    ),
    "codegen": Family("gptj:codegen", "codegen", ("CodeGenForCausalLM",), 2048),
    "cohere": Family("cohere:cohere", "cohere", ("CohereForCausalLM",), 8192),
    "cohere2": Family("cohere:cohere2", "cohere2", ("Cohere2ForCausalLM",), 8192),
    "cohere2_moe": Family(
        "cohere_moe:cohere2_moe", "cohere2_moe", ("Cohere2MoeForCausalLM",), 8192
    ),
    "dbrx": Family("dbrx:dbrx", "dbrx", ("DbrxForCausalLM",), 2048),
    "deci": Family(
        "nemotron_nas:decilm",
        "vllm-project/vllm@fc5726d3:vllm/model_executor/models/decilm.py",
        ("DeciLMForCausalLM",),
        None,
    ),
    "deepseek": Family("deepseek_moe:deepseek", "deepseek_v2", ("DeepseekForCausalLM",), None),
    "deepseek_ref": Family(
        "deepseek_v4:deepseek_v4", "deepseek_v4", ("DeepseekV4ForCausalLM",), 1_048_576
    ),
    "deepseek_v2": Family("deepseek:deepseek_v2", "deepseek_v2", ("DeepseekV2ForCausalLM",), 2048),
    "deepseek_v3": Family("deepseek:deepseek_v3", "deepseek_v3", ("DeepseekV3ForCausalLM",), 4096),
    "deepseek_v32": Family(
        "deepseek_v32:deepseek_v32", "deepseek_v32", ("DeepseekV32ForCausalLM",), 163_840
    ),
    "deepseek_v4": Family(
        "deepseek_v4:deepseek_v4", "deepseek_v4", ("DeepseekV4ForCausalLM",), 1_048_576
    ),
    "dots1": Family("dots1:dots1", "dots1", ("Dots1ForCausalLM",), 2048),
    "ernie4_5": Family("llama:ernie4_5", "ernie4_5", ("Ernie4_5ForCausalLM",), 131_072),
    "ernie4_5_moe": Family(
        "ernie_moe:ernie4_5_moe", "ernie4_5_moe", ("Ernie4_5_MoeForCausalLM",), 131_072
    ),
    "exaone": Family("exaone:exaone", "exaone", ("ExaoneForCausalLM",), 4096),
    "exaone4": Family("exaone:exaone4", "exaone4", ("Exaone4ForCausalLM",), 2048),
    "exaone_moe": Family(
        "exaone:exaone_moe", "exaone_moe", ("ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM"), 2048
    ),
    "falcon": Family("falcon:falcon", "falcon", ("FalconForCausalLM",), 2048),
    "falcon_h1": Family("bamba:falcon_h1", "falcon_h1", ("FalconH1ForCausalLM",), 8192),
    "falcon_mamba": Family("mamba:falcon_mamba", "falcon_mamba", ("FalconMambaForCausalLM",), None),
    "flex_olmo": Family("flex_olmo:flex_olmo", "flex_olmo", ("FlexOlmoForCausalLM",), 4096),
    "gemma": Family("gemma:gemma", "gemma", ("GemmaForCausalLM",), 8192),
    "gemma2": Family("gemma:gemma2", "gemma2", ("Gemma2ForCausalLM",), 8192),
    "gemma3_text": Family(
        "gemma:gemma3_text", "gemma3", ("Gemma3ForCausalLM",), 131_072, scaled=True
    ),
    "gemma3n_text": Family("gemma3n:gemma3n_text", "gemma3n", ("Gemma3nForCausalLM",), 32_768),
    "gemma4_text": Family("gemma4:gemma4_text", "gemma4", ("Gemma4ForCausalLM",), 131_072),
    "gla": Family(
        "gla:gla",
        "fla-org/flash-linear-attention@038bdb3c65:fla/models/gla/configuration_gla.py",
        ("GLAForCausalLM",),
        2048,
    ),
    "glm": Family("glm:glm", "glm", ("GlmForCausalLM",), 131_072),
    "glm4": Family("glm:glm4", "glm4", ("Glm4ForCausalLM",), 131_072),
    "glm4_moe": Family("glm4_moe:glm4_moe", "glm4_moe", ("Glm4MoeForCausalLM",), 131_072),
    "glm4_moe_lite": Family(
        "deepseek:glm4_moe_lite", "glm4_moe_lite", ("Glm4MoeLiteForCausalLM",), 202_752
    ),
    "glm_moe_dsa": Family(
        "deepseek_v32:glm_moe_dsa", "glm_moe_dsa", ("GlmMoeDsaForCausalLM",), 202_752
    ),
    "gpt2": Family("gpt2:gpt2", "gpt2", ("GPT2LMHeadModel",), 1024),
    "gpt_bigcode": Family(
        "gpt_bigcode:gpt_bigcode", "gpt_bigcode", ("GPTBigCodeForCausalLM",), 1024
    ),
    "gpt_neox": Family("gpt_neox:gpt_neox", "gpt_neox", ("GPTNeoXForCausalLM",), 2048),
    "gpt_neox_reward_model": Family(
        "gpt_neox:gpt_neox_reward", "gpt_neox", ("GPTNeoXRewardModel",), 2048
    ),
    "gpt_oss": Family("gpt_oss:gpt_oss", "gpt_oss", ("GptOssForCausalLM",), 131_072),
    "gptj": Family("gptj:gptj", "gptj", ("GPTJForCausalLM",), 2048),
    "granite": Family("llama:granite", "granite", ("GraniteForCausalLM",), 2048),
    "granite_swa": Family(
        "granite_swa:granite_swa", "granite_swa", ("GraniteSWAForCausalLM",), 8192
    ),
    "granitemoe": Family("granite_moe:granitemoe", "granitemoe", ("GraniteMoeForCausalLM",), 2048),
    "granitemoe_swa": Family(
        "granite_swa:granitemoe_swa", "granitemoe_swa", ("GraniteMoeSWAForCausalLM",), 2048
    ),
    "granitemoehybrid": Family(
        "granite_moe:granitemoehybrid", "granitemoehybrid", ("GraniteMoeHybridForCausalLM",), 2048
    ),
    "granitemoeshared": Family(
        "granite_moe:granitemoeshared", "granitemoeshared", ("GraniteMoeSharedForCausalLM",), 2048
    ),
    "hunyuan": Family(
        "hunyuan:hunyuan", "hunyuan_v1_moe", ("HunYuanMoEV1ForCausalLM", "HunYuanForCausalLM"), 2048
    ),
    "hunyuan_v1_dense": Family(
        "hunyuan:hunyuan_dense", "hunyuan_v1_dense", ("HunYuanDenseV1ForCausalLM",), 2048
    ),
    "hunyuan_v1_moe": Family(
        "hunyuan:hunyuan_moe", "hunyuan_v1_moe", ("HunYuanMoEV1ForCausalLM",), 2048
    ),
    "hy_v3": Family("hunyuan:hy_v3", "hy_v3", ("HYV3ForCausalLM",), 131_072),
    "hyperclovax": Family(
        "hyperclovax:hyperclovax", "hyperclovax", ("HyperCLOVAXForCausalLM",), 2048
    ),
    "internlm": Family(
        "internlm:internlm",
        "vllm-project/vllm@6916df80:vllm/model_executor/models/internlm.py",
        ("InternLMForCausalLM",),
        None,
    ),
    "internlm2": Family(
        "internlm:internlm2",
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/internlm2.py",
        ("InternLM2ForCausalLM",),
        None,
    ),
    "internlm3": Family("internlm:internlm3", "internlm3", ("InternLM3ForCausalLM",), 32_768),
    "jamba": Family("jamba:jamba", "jamba", ("JambaForCausalLM",), 262_144),
    "jetmoe": Family("jetmoe:jetmoe", "jetmoe", ("JetMoeForCausalLM",), 4096),
    # Kimi K2 keeps its own type but names DeepSeek V3's class.
    "kimi_k2": Family("deepseek:deepseek_v3", "deepseek_v3", ("DeepseekV3ForCausalLM",), 4096),
    "kimi_linear": Family(
        "kimi_linear:kimi_linear", "kimi_linear", ("KimiLinearForCausalLM",), 1_048_576
    ),
    "laguna": Family("laguna:laguna", "laguna", ("LagunaForCausalLM",), 131_072),
    "lfm2": Family("lfm2:lfm2", "lfm2", ("Lfm2ForCausalLM",), 128_000),
    "lfm2_moe": Family("lfm2:lfm2_moe", "lfm2_moe", ("Lfm2MoeForCausalLM",), 128_000),
    "llama": Family("llama:llama", "llama", ("LlamaForCausalLM", "LLaMAForCausalLM"), 2048),
    "llama4_text": Family("llama4:llama4_text", "llama4", ("Llama4ForCausalLM",), 131_072),
    "mamba": Family("mamba:mamba", "mamba", ("MambaForCausalLM",), None),
    "mamba2": Family("mamba2:mamba2", "mamba2", ("Mamba2ForCausalLM",), None),
    "marian": Family("bart:marian", "marian", ("MarianMTModel",), 1024),
    "mbart": Family("bart:mbart", "mbart", ("MBartForConditionalGeneration",), 1024),
    "mimo": Family(
        "mimo:mimo",
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/mimo.py",
        ("MiMoForCausalLM",),
        None,
    ),
    "mimo_v2": Family("mimo:mimo_v2", "mimo_v2_flash", ("MiMoV2ForCausalLM",), 131_072),
    "mimo_v2_flash": Family("mimo:mimo_v2", "mimo_v2_flash", ("MiMoV2FlashForCausalLM",), 131_072),
    "minicpm": Family(
        "minicpm:minicpm",
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/minicpm.py",
        ("MiniCPMForCausalLM",),
        None,
    ),
    "minicpm3": Family("minicpm3:minicpm3", "minicpm3", ("MiniCPM3ForCausalLM",), 32_768),
    "minimax": Family("lightning:minimax", "minimax", ("MiniMaxForCausalLM",), 131_072),
    "minimax_m1": Family("lightning:minimax_text_01", "minimax", ("MiniMaxM1ForCausalLM",), None),
    "minimax_m2": Family("minimax_m2:minimax_m2", "minimax_m2", ("MiniMaxM2ForCausalLM",), 196_608),
    "minimax_m3": Family(
        "minimax_m3:minimax_m3",
        "minimax_m3_vl",
        ("MiniMaxM3ForCausalLM", "MiniMaxM3SparseForCausalLM"),
        524_288,
    ),
    "minimax_m3_vl_text": Family(
        "minimax_m3:minimax_m3", "minimax_m3_vl", ("MiniMaxM3VLForCausalLM",), 524_288
    ),
    "minimax_text_01": Family(
        "lightning:minimax_text_01", "minimax", ("MiniMaxText01ForCausalLM",), None
    ),
    "minimind": Family(
        "minimind:minimind", "jingyaogong/minimind@02297df3:model/model.py", ("MiniMindLM",), None
    ),
    "ministral3": Family(
        "llama:ministral3", "ministral3", ("Ministral3ForCausalLM", "MistralForCausalLM"), 262_144
    ),
    "mistral": Family("llama:mistral", "mistral", ("MistralForCausalLM",), 131_072),
    "mixformer-sequential": Family(
        "phi_old:mixformer",
        "4g/kaggle_science_llm@7239c176:modeling_mixformer_sequential.py",
        ("MixFormerSequentialForCausalLM",),
        None,
    ),
    "mixtral": Family("mixtral:mixtral", "mixtral", ("MixtralForCausalLM",), 131_072),
    "mllama": Family(
        "mllama:mllama", "mllama", ("MllamaForConditionalGeneration",), 131_072, "text_config"
    ),
    "molmo": Family("molmo:molmo", "molmo", ("MolmoForCausalLM",), None),
    "mpt": Family("mpt:mpt", "mpt", ("MPTForCausalLM", "MptForCausalLM"), 2048),
    "mt5": Family("t5:mt5", "mt5", ("MT5ForConditionalGeneration",), None),
    "nemotron": Family("nemotron:nemotron", "nemotron", ("NemotronForCausalLM",), 4096),
    "nemotron-nas": Family(
        "nemotron_nas:nemotron_nas",
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/nemotron_nas.py",
        ("DeciLMForCausalLM",),
        None,
    ),
    "nemotron_h": Family("nemotron_h:nemotron_h", "nemotron_h", ("NemotronHForCausalLM",), 4096),
    "olmo": Family("olmo:olmo", "olmo", ("OlmoForCausalLM",), 2048),
    "olmo2": Family("olmo:olmo2", "olmo2", ("Olmo2ForCausalLM",), 2048),
    "olmo3": Family("olmo:olmo3", "olmo3", ("Olmo3ForCausalLM",), 2048),
    "olmo_hybrid": Family(
        "olmo_hybrid:olmo_hybrid", "olmo_hybrid", ("OlmoHybridForCausalLM",), 65_536
    ),
    "olmoe": Family("olmoe:olmoe", "olmoe", ("OlmoeForCausalLM",), 4096),
    "openelm": Family(
        "openelm:openelm",
        "ml-explore/mlx-lm@269906bf:mlx_lm/models/openelm.py",
        ("OpenELMForCausalLM",),
        None,
    ),
    "opt": Family("opt:opt", "opt", ("OPTForCausalLM",), 2048),
    "orion": Family(
        "baichuan:orion",
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/orion.py",
        ("OrionForCausalLM",),
        None,
    ),
    "pegasus": Family("bart:pegasus", "pegasus", ("PegasusForConditionalGeneration",), 1024),
    "persimmon": Family("persimmon:persimmon", "persimmon", ("PersimmonForCausalLM",), 16_384),
    "phi": Family("phi:phi", "phi", ("PhiForCausalLM",), 2048),
    "phi-msft": Family(
        "phi_old:phi_msft",
        "vllm-project/vllm@1baf87bf:vllm/model_executor/models/phi_1_5.py",
        ("PhiForCausalLM",),
        None,
    ),
    "phi3": Family("phi:phi3", "phi3", ("Phi3ForCausalLM",), 4096),
    "phi3small": Family(
        "phi3_small:phi3_small",
        "vllm-project/vllm@e233578c:vllm/model_executor/models/phi3_small.py",
        ("Phi3SmallForCausalLM",),
        None,
    ),
    "phi4flash": Family(
        "phi4_flash:phi4_flash",
        "NVIDIA/TensorRT-LLM@eedd4af3:tensorrt_llm/_torch/auto_deploy/models/custom/modeling_phi4flash.py",
        ("Phi4FlashForCausalLM",),
        4096,
    ),
    "phimoe": Family(
        "phimoe:phimoe", "phimoe", ("PhimoeForCausalLM", "PhiMoEForCausalLM"), 131_072
    ),
    "qwen": Family(
        "qwen_v1:qwen_v1",
        "x1ngzai/Qwen-VL-Chat-Int4@1cd721a2:configuration_qwen.py",
        ("QWenLMHeadModel",),
        None,
    ),
    "qwen2": Family("qwen:qwen2", "qwen2", ("Qwen2ForCausalLM",), 32_768),
    "qwen2_moe": Family("qwen:qwen2_moe", "qwen2_moe", ("Qwen2MoeForCausalLM",), 32_768),
    "qwen3": Family("qwen:qwen3", "qwen3", ("Qwen3ForCausalLM",), 32_768),
    "qwen3_5_moe_text": Family(
        "qwen3_next:qwen3_5_moe_text",
        "qwen3_5_moe",
        ("Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration"),
        32_768,
    ),
    "qwen3_5_text": Family(
        "qwen3_next:qwen3_5_text",
        "qwen3_5",
        ("Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration"),
        32_768,
    ),
    "qwen3_moe": Family("qwen:qwen3_moe", "qwen3_moe", ("Qwen3MoeForCausalLM",), 32_768),
    "qwen3_next": Family("qwen3_next:qwen3_next", "qwen3_next", ("Qwen3NextForCausalLM",), 32_768),
    "rugpt3xl": Family(
        "rugpt3xl:rugpt3xl",
        "EvilFreelancer/rugpt3xl-convert@92259eba:modeling_rugpt3xl.py",
        ("RuGPT3XLForCausalLM",),
        2048,
    ),
    "rwkv": Family("rwkv:rwkv", "rwkv", ("RwkvForCausalLM",), None),
    "rwkv5": Family(
        "rwkv:rwkv5",
        "mlc-ai/mlc-llm@01ced331a9:python/mlc_llm/model/rwkv5/rwkv5_model.py",
        ("RwkvForCausalLM", "Rwkv5ForCausalLM"),
        None,
    ),
    "rwkv6": Family(
        "rwkv:rwkv6",
        "mlc-ai/mlc-llm@01ced331a9:python/mlc_llm/model/rwkv6/rwkv6_model.py",
        ("Rwkv6ForCausalLM",),
        None,
    ),
    "rwkv7": Family(
        "rwkv7:rwkv7",
        "fla-org/flash-linear-attention@0315a70ea5:fla/layers/rwkv7.py",
        ("RWKV7ForCausalLM",),
        None,
    ),
    "seed_oss": Family("llama:seed_oss", "seed_oss", ("SeedOssForCausalLM",), 524_288),
    "smollm3": Family("llama:smollm3", "smollm3", ("SmolLM3ForCausalLM",), 32_768),
    "solar": Family(
        "solar:solar",
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/solar.py",
        ("SolarForCausalLM",),
        None,
    ),
    "solar_open": Family("solar:solar_open", "solar_open", ("SolarOpenForCausalLM",), 131_072),
    "spark2_5": Family(
        "spark:spark2_5",
        "XHToken/Spark-plugin@45a7d43a:src/vllm_spark2_5_plugin/spark2_5_config.py",
        ("Spark2_5ForCausalLM",),
        8192,
    ),
    "stablelm": Family("stablelm:stablelm", "stablelm", ("StableLmForCausalLM",), 4096),
    "starcoder2": Family("starcoder2:starcoder2", "starcoder2", ("Starcoder2ForCausalLM",), 4096),
    "step1": Family(
        "step1:step1",
        "vllm-project/vllm@v0.33.0:vllm/model_executor/models/step1.py",
        ("Step1ForCausalLM",),
        None,
    ),
    "step3_text": Family(
        "step:step3_text",
        "vllm-project/vllm@v0.33.0:vllm/transformers_utils/configs/step3_vl.py",
        ("Step3TextForCausalLM",),
        65_536,
    ),
    "step3p5": Family("step:step3p5", "step3p7", ("Step3p5ForCausalLM",), 128_000),
    "step3p7": Family("step:step3p5", "step3p7", ("Step3p7FlashForCausalLM",), 128_000),
    "t5": Family("t5:t5", "t5", ("T5ForConditionalGeneration", "T5WithLMHeadModel"), None),
    "umt5": Family("t5:umt5", "umt5", ("UMT5ForConditionalGeneration",), None),
    "whisper": Family("whisper:whisper", "whisper", ("WhisperForConditionalGeneration",), 448),
    "xverse": Family(
        "baichuan:xverse",
        "vllm-project/vllm@ae3d6121:vllm/model_executor/models/xverse.py",
        ("XverseForCausalLM",),
        None,
    ),
    "zamba2": Family("zamba2:zamba2", "zamba2", ("Zamba2ForCausalLM",), 4096),
}
