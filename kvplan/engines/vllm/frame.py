"""Everything that is settled before a layer is looked at: release, device, types, settings."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.base import Setup
from kvplan.engines.vllm import by_model, history, kv_dtypes, settings
from kvplan.engines.vllm.options import read_options
from kvplan.errors import EngineRefusesError, UsageError, shown
from kvplan.hardware import DeviceMemory, device_memory
from kvplan.models.formats import DTYPE_BYTES, Dtype, KvFormat
from kvplan.models.spec import ModelSpec

# A bare amount of memory takes the rules of this device (compute capability).
CUSTOM_SM = (9, 0)
BFLOAT16_SM = (8, 0)
# vllm/config/model.py, _get_and_verify_max_len: a configuration without any length.
UNSTATED_CONTEXT = 2048


@dataclass(frozen=True, slots=True)
class Frame:
    """A setup with what follows from it.

    Attributes:
        dtype: The type that the model runs in.
        kv_dtype, kv: The cache type in force, and its format.
    """

    setup: Setup
    version: str
    rules: history.Rules
    device: DeviceMemory
    sm: tuple[int, int]
    dtype: Dtype
    kv_dtype: str
    kv: KvFormat
    settings: settings.Settings

    @property
    def context(self) -> int:
        """max_model_len."""
        return self.setup.context or self.setup.model.max_context or UNSTATED_CONTEXT


def frame_of(setup: Setup) -> Frame:
    """Settles release, device, types and settings.

    Raises:
        EngineRefusesError, NotModelledError, UsageError: see `kvplan.engines.base.Engine`.
    """
    version = setup.version or history.NEWEST
    rules = history.rules_for(version, use_v1=read_options(setup.options).get("use_v1"))
    device, sm = device_memory(setup.gpu), compute_capability(setup)
    dtype = compute_dtype(setup.model, setup.dtype, sm)
    kv_dtypes.check_release(setup.kv_dtype, version)
    kv_dtype, kv = kv_dtypes.resolve(setup.kv_dtype, dtype, setup.model.kv_scheme)
    return Frame(
        setup=setup,
        version=version,
        rules=rules,
        device=device,
        sm=sm,
        dtype=dtype,
        kv_dtype=kv_dtype,
        kv=kv,
        settings=settings.resolve(
            setup.options,
            rules,
            setup.gpu,
            total_bytes=device.total,
            context=setup.context or setup.model.max_context or UNSTATED_CONTEXT,
            pp=setup.parallelism.pp,
            dp=setup.parallelism.dp,
            version=version,
            attention=by_model.attention_of(setup.model),
        ),
    )


def compute_dtype(model: ModelSpec, asked: str, sm: tuple[int, int]) -> Dtype:
    """The type vLLM computes in.

    ``auto`` halves a float32 checkpoint, and takes float16 where the device has no bfloat16
    (below compute capability 8.0). Source: vllm/config/model.py, _resolve_auto_dtype.
    """
    names: dict[str, Dtype] = {
        "bfloat16": "bfloat16",
        "float16": "float16",
        "half": "float16",
        "float32": "float32",
        "float": "float32",
    }
    if asked == "auto":
        if sm < BFLOAT16_SM:
            return "float16"
        return "bfloat16" if model.dtype == "float32" else model.dtype
    if asked not in names:
        raise UsageError(
            f"vLLM has no dtype {shown(asked)}.",
            hint=f"Use auto or one of {', '.join(DTYPE_BYTES)}.",
        )
    return names[asked]


def compute_capability(setup: Setup) -> tuple[int, int]:
    """That of the device; a bare amount of memory takes an H100's."""
    gpu = setup.gpu
    if gpu.sm is not None:
        return gpu.sm
    if gpu.vendor in ("apple", "google", "aws"):
        raise EngineRefusesError(
            f"vLLM's CUDA and ROCm builds do not run on {gpu.id}.",
            hint="Choose an NVIDIA or AMD GPU, or another engine.",
        )
    return CUSTOM_SM
