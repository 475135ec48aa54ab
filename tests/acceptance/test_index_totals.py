"""Predicted checkpoint bytes against index files: the script in validation/ and what it finds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "validation" / "index_totals.py"
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "vocab_size": 1024,
    "torch_dtype": "bfloat16",
}
BYTES = 2 * (2 * 1024 * 256 + 4 * 256 * 256 + 3 * 512 * 256 + 3 * 256)


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(folder)],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def test_indexes_of_real_models(shared: Path) -> None:
    """Half of them to the byte; every difference beyond half a percent has a reason."""
    done = run(shared / "configs")
    assert (done.returncode, done.stderr) == (0, "")
    assert "not explained" not in done.stdout
    figures = re.search(
        r"^(\d+) indexes: (\d+) to the byte, median ([\d.]+)%, (\d+) beyond",
        done.stdout,
        re.MULTILINE,
    )
    assert figures is not None
    indexes, exact, median, beyond = map(float, figures.groups())
    assert indexes >= 80
    assert exact >= 50
    assert median <= 0.5
    assert beyond <= 20


def model(folder: Path, name: str, total: object, **changes: object) -> None:
    (folder / name).mkdir()
    (folder / name / "config.json").write_text(json.dumps(CONFIG | changes))
    index = {"metadata": {"total_size": total}, "weight_map": {}}
    (folder / name / "model.safetensors.index.json").write_text(json.dumps(index))


def test_models_by_hand(tmp_path: Path) -> None:
    model(tmp_path, "exact", BYTES)
    model(tmp_path, "close", BYTES - BYTES // 400)
    model(tmp_path, "far", 2 * BYTES)
    model(tmp_path, "mute", 0)
    model(tmp_path, "strange", BYTES, model_type="never_heard_of")
    (tmp_path / "without").mkdir()
    lines = run(tmp_path).stdout.splitlines()
    assert re.match(rf"far +{BYTES:,} +{2 * BYTES:,} +-50.00%  not explained", lines[0])
    assert lines[1] == "left out: mute: its index states no total"
    assert lines[2].startswith("left out: strange: Models of type 'never_heard_of'")
    assert lines[3] == ("3 indexes: 1 to the byte, median 0.2506%, 1 beyond 0.5%; 2 left out")
