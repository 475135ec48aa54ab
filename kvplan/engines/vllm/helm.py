"""A plan → values of vLLM's own Helm chart, vllm-stack of vllm-project/production-stack.

Source: vllm-project/production-stack@a6c01db05 helm/values.yaml, helm/values.schema.json and
helm/templates/deployment-vllm-multi.yaml. The chart starts `vllm serve MODEL` with what
``vllmConfig`` has names for, and then ``extraArgs``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kvplan.engines import docker, launch
from kvplan.engines.launch import Asked
from kvplan.engines.vllm import command_emit
from kvplan.errors import UsageError
from kvplan.plan import Plan

CHART, CHART_VERSION = "vllm-stack", "0.1.12"
# What the chart asks for and no plan says: its own example (helm/values.yaml).
_CPUS, _HOST_MEMORY = 6, "16Gi"
# Helm hands whole numbers from here on to its templates as 1e+06 (helm/helm#12195).
_TOO_GREAT = 10**6
# The chart's names become those of pods, with more around them; Kubernetes takes 63 characters.
_LONGEST_NAME = 30
_DATA_PARALLEL = "--data-parallel-size"
_NAMED: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "--tensor-parallel-size": ("tensorParallelSize", int),
    "--max-model-len": ("maxModelLen", int),
    "--max-num-seqs": ("maxNumSeqs", int),
    "--gpu-memory-utilization": ("gpuMemoryUtilization", float),
    "--dtype": ("dtype", str),
}
_SWITCHES: Mapping[str, tuple[str, bool]] = {
    "--enable-chunked-prefill": ("enableChunkedPrefill", True),
    "--no-enable-chunked-prefill": ("enableChunkedPrefill", False),
    "--enable-prefix-caching": ("enablePrefixCaching", True),
    "--no-enable-prefix-caching": ("enablePrefixCaching", False),
}


def emit(plan: Plan, asked: Asked, gpus_per_node: int | None = None) -> str:
    """The values file.

    Args:
        plan: A plan under vLLM.
        asked: What it was asked for.
        gpus_per_node: GPUs of one machine, if that was said.

    Raises:
        UsageError: the chart has no value for what was planned.
    """
    model, revision = launch.named(asked, "vLLM")
    if asked.is_path:
        raise UsageError(
            "A pod does not see the files of this machine.",
            hint="Give the model's Hub id, or --emit docker.",
            location="--emit",
        )
    apart = _apart(plan)
    pod = plan.gpu.count // apart
    docker.check_one_machine(_of_one_pod(plan, apart), gpus_per_node, "A pod")
    repository, _, tag = docker.image_of(plan).rpartition(":")
    spec: dict[str, Any] = {
        "name": _name(model),
        "repository": repository,
        "tag": tag,
        "modelURL": model,
    }
    spec |= {"modelRevision": revision} if revision else {}
    spec |= {"replicaCount": apart, "requestCPU": _CPUS, "requestMemory": _HOST_MEMORY}
    spec["requestGPU"] = pod
    variables = command_emit.environment(plan, asked.options)
    if variables:
        spec["env"] = [{"name": key, "value": value} for key, value in variables.items()]
    spec["vllmConfig"] = _config(plan, asked, pod, apart)
    return "".join((*_head(plan, pod), *_lines(spec)))


def _apart(plan: Plan) -> int:
    """Pods: replicas, unless they share their experts, which makes one deployment of them."""
    active, total = plan.model.parameters_active, plan.model.parameters_total
    return plan.parallelism.dp if active is not None and active == total else 1


def _of_one_pod(plan: Plan, apart: int) -> Plan:
    return plan.model_copy(
        update={"gpu": plan.gpu.model_copy(update={"count": plan.gpu.count // apart})}
    )


def _name(model: str) -> str:
    """A name that Kubernetes takes: small letters, digits and dashes.

    >>> _name("meta-llama/Llama-3.1-8B_Instruct")
    'llama-3-1-8b-instruct'
    """
    plain = re.sub(r"[^a-z0-9]+", "-", model.rpartition("/")[2].lower())
    return plain[:_LONGEST_NAME].strip("-") or "model"


def _config(plan: Plan, asked: Asked, pod: int, apart: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    # The chart switches prefix caching off unless it is told not to.
    found["enablePrefixCaching"] = bool(plan.engine.options.get("enable_prefix_caching"))
    if pod > 1:  # it mounts shared memory where it is told of this
        found["tensorParallelSize"] = plan.parallelism.tp
    extra: list[str] = []
    for flag, *values in command_emit.flags(plan, asked):
        name, read = _NAMED.get(flag, ("", str))
        if flag in _SWITCHES:
            switch, on = _SWITCHES[flag]
            found[switch] = on
        elif name and not _is_too_great(read(values[0])):
            found[name] = read(values[0])
        elif flag != "--revision" and not (flag == _DATA_PARALLEL and apart > 1):
            extra += [flag, *values]
    return found | ({"extraArgs": extra} if extra else {})


def _is_too_great(value: Any) -> bool:
    return isinstance(value, int) and value >= _TOO_GREAT


def _head(plan: Plan, pod: int) -> Iterator[str]:
    yield f"# Values of the chart {CHART} {CHART_VERSION} (vllm-project/production-stack):\n"
    yield "#   helm repo add vllm https://vllm-project.github.io/production-stack\n"
    yield f"#   helm install vllm vllm/{CHART} --version {CHART_VERSION} -f values.yaml\n"
    yield f"# Planned for {pod} × {plan.gpu.id} a pod: nodeSelectorTerms choose nodes with them.\n"
    yield "# Not planned: requestCPU and requestMemory, which are the chart's own example, and\n"
    yield "# pvcStorage, without which each pod downloads the weights anew.\n"


def _lines(spec: Mapping[str, Any]) -> Iterator[str]:
    """YAML, without a library for it: mappings, lists of texts, and lists of flat mappings."""
    yield "servingEngineSpec:\n  modelSpec:\n"
    for at, (name, value) in enumerate(spec.items()):
        lead = "    - " if at == 0 else "      "
        yield f"{lead}{name}:" + _value(value, " " * 8)


def _value(value: Any, indent: str) -> str:
    if isinstance(value, Mapping):
        return "\n" + "".join(f"{indent}{k}:{_value(v, indent + '  ')}" for k, v in value.items())
    if isinstance(value, list):
        return "\n" + "".join(f"{indent}- {_item(each)}\n" for each in value)
    return f" {_scalar(value)}\n"


def _item(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {_scalar(v)}" for k, v in value.items()) + "}"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return '"' + "".join(_escaped(letter) for letter in value) + '"'
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _escaped(letter: str) -> str:
    r"""As YAML's double quotes have it, which know no pairs of surrogates.

    >>> _escaped('"'), _escaped("é"), _escaped("\U0001f600")
    ('\\"', '\\u00e9', '\\U0001f600')
    """
    if letter in '"\\':
        return f"\\{letter}"
    if " " <= letter <= "~":
        return letter
    code = ord(letter)
    return f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"
