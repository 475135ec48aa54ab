"""Types of models that are no language model with one decoder: why each can't be planned."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# Read from the files of these types: the parts they list, and the class they name.
ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "falcon_perception": "It segments images.",
        "fish_qwen3_omni": "It speaks: a second decoder writes ten codebooks for each token.",
        "infimm-zephyr": "It looks at images through layers of a size that no file states.",
        "nvembed": "It embeds texts: its decoder reads in both directions and keeps no cache.",
        "seamless_m4t": "It translates speech: several encoders and decoders, and a vocoder.",
        "seamless_m4t_v2": "It translates speech: several encoders and decoders, and a vocoder.",
    }
)
