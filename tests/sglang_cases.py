"""What SGLang's pools allocated, case by case, and what kvplan computes of the same pools.

A case is a flat dictionary: the ``pool`` class, the ``model`` it was filled for, its arguments,
and ``tensor_bytes`` that its tensors took on a CPU.
"""

from __future__ import annotations

from typing import Any

from kvplan.engines.sglang import pools
from kvplan.engines.sglang.kv_dtypes import Stored, resolve
from kvplan.engines.sglang.states import slot_bytes
from kvplan.models.caches import RecurrentCache, StateTensor

_TYPES = {"bfloat16": "bfloat16", "float8_e4m3fn": "fp8_e4m3"}
_DERIVED = ("conv_shape", "temporal_shape", "heads_per_rank", "kv_cache_dim", "layers_total")


def case_of(row: dict[str, Any]) -> dict[str, Any]:
    """A reference row as a case."""
    asked = {name: value for name, value in row["params"].items() if name not in _DERIVED}
    case = {"pool": row["pool"], "model": row["model"], **asked}
    case["tensor_bytes"] = row["tensor_bytes"]
    if row["pool"] == "DSATokenToKVPool":
        # The indexer's keys are counted by the pool, and are not in its list of tensors.
        case["with_index"] = row["get_kv_size_bytes"]
    return case


def computed(case: dict[str, Any]) -> dict[str, int]:
    """The same figures by kvplan."""
    return {
        "MHATokenToKVPool": _headed,
        "MLATokenToKVPool": _latent,
        "DSATokenToKVPool": _sparse,
        "SWAKVPool": _windows,
        "MambaPool": _states,
        "ReqToTokenPool": _table,
    }[case["pool"]](case)


def expected(case: dict[str, Any]) -> dict[str, int]:
    """The figures of the reference, by the same names."""
    names = ("tensor_bytes", "with_index", "mamba_cache_per_req")
    return {name: case[name] for name in names if name in case}


def _stored(case: dict[str, Any]) -> Stored:
    return resolve(_TYPES[case["dtype"]], "bfloat16", prescribed=None, sparse=False, sm=(9, 0))


def _headed(case: dict[str, Any]) -> dict[str, int]:
    heads = -(-case["total_kv_heads"] // case["tp"])
    cell = pools.headed_bytes(heads, case["head_dim"], case["head_dim"], _stored(case))
    size = pools.pool_bytes(case["size"], case["page_size"], case["layers"] * cell)
    return {"tensor_bytes": size}


def _latent(case: dict[str, Any]) -> dict[str, int]:
    cell = pools.latent_bytes(case["kv_lora_rank"], case["qk_rope_head_dim"], _stored(case))
    size = pools.pool_bytes(case["size"], case["page_size"], case["layers"] * cell)
    return {"tensor_bytes": size}


def _sparse(case: dict[str, Any]) -> dict[str, int]:
    cell = pools.sparse_latent_bytes(
        case["kv_lora_rank"], case["qk_rope_head_dim"], _stored(case), raw=False
    )
    index = pools.index_bytes(case["index_head_dim"])
    latent, both = (
        pools.pool_bytes(case["size"], case["page_size"], case["layers"] * size)
        for size in (cell, cell + index)
    )
    return {"tensor_bytes": latent, "with_index": both}


def _windows(case: dict[str, Any]) -> dict[str, int]:
    cell = pools.headed_bytes(case["kv_heads"], case["head_dim"], case["head_dim"], _stored(case))
    full = pools.pool_bytes(case["size"], case["page_size"], case["full_layers"] * cell)
    window = pools.pool_bytes(case["size_swa"], case["page_size"], case["swa_layers"] * cell)
    return {"tensor_bytes": full + window}


def _states(case: dict[str, Any]) -> dict[str, int]:
    taps = case["conv_kernel"] - 1
    # Mamba 2 convolves its heads' inputs, and B and C of each group; the gated delta rule queries
    # and keys of as many heads, which is the same shape.
    cache = RecurrentCache(
        states=(
            StateTensor(name="conv", shape=(case["intermediate_size"], taps)),
            StateTensor(name="conv groups", shape=(case["n_groups"], 2 * case["state_size"], taps)),
            StateTensor(
                name="ssm", shape=(case["num_heads"], case["head_dim"], case["state_size"])
            ),
        )
    )
    slot = slot_bytes([cache] * case["mamba_layers"], tp=case["tp"], ssm_dtype=case["ssm_dtype"])
    size = pools.state_pool_bytes(case["size"], slot)
    return {"tensor_bytes": size, "mamba_cache_per_req": slot}


def _table(case: dict[str, Any]) -> dict[str, int]:
    size = pools.request_table_bytes(case["size"], case["max_context_len"], padding=1)
    return {"tensor_bytes": size}
