"""check, lock, diff, init and schema as commands: exit codes, streams, files, the example."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from syrupy.assertion import SnapshotAssertion

from kvplan._version import __version__
from kvplan.reports.render_check import CheckFormat
from tests.scenario_files import LLAMA, one, write

Command = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLE = Path(__file__).parents[2] / "examples" / "ci"
GOOD = "context: 8k\nconcurrency: 4"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (GOOD, 0),
        ("context: 8k\nconcurrency: 4000", 1),
        (f"{GOOD}\ntpp: 2", 2),
        (f"{GOOD}\nmodel: nobody/nothing", 3),
        (f"{GOOD}\ntp: 3", 4),
    ],
)
def test_exit_codes_are_those_of_the_contract(
    kvplan: Command, tmp_path: Path, body: str, code: int
) -> None:
    write(tmp_path, one(body))
    done = kvplan("check", "kvplan.yaml", "--offline")
    assert done.returncode == code
    assert "1 scenario: " in done.stdout
    assert done.stderr == ""


def test_the_worst_of_several_files_decides(kvplan: Command, tmp_path: Path) -> None:
    write(tmp_path, one(f"{GOOD}\ntp: 3"), "a.yaml")
    write(tmp_path, one(GOOD), "b.yaml")
    done = kvplan("check", "b.yaml", "a.yaml", "--offline", "--jobs", "2")
    assert done.returncode == 4
    assert done.stdout.startswith("REFUSED a (a.yaml:3:3)")


def test_the_example(kvplan: Command, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "ci")
    done = kvplan("check", "ci/deployments", "--offline", "--format", "json")
    found = {each["name"]: each for each in json.loads(done.stdout)["scenarios"]}
    assert done.returncode == 1
    assert {name: each["outcome"] for name, each in found.items()} == {
        "chat-small": "passed",
        "chat-large": "passed",
        "chat-two-cards[gpu=L4-24GB]": "failed",
        "chat-two-cards[gpu=L40S-48GB]": "failed",
        "answers": "passed",
        "profile-in-prefix": "failed",
        "too-many-ranks": "passed",
        "summaries": "passed",
        "nobody-asked": "failed",
        "known-to-be-too-large": "passed",
        "from-a-trace": "passed",
        "rush-hour": "failed",
        "conversations": "passed",
    }
    assert len({name.partition("[")[0] for name in found}) == 12
    codes = {
        name: [finding["code"] for finding in each["findings"]] for name, each in found.items()
    }
    assert codes["profile-in-prefix"] == ["KV102"]
    assert codes["too-many-ranks"] == ["KV107"]
    assert codes["nobody-asked"] == ["KV105", "KV111"]
    assert codes["conversations"] == []
    assert found["answers"]["findings"][0]["ignored"] == "the handbook is public"


@pytest.mark.parametrize("wanted", get_args(CheckFormat))
def test_the_example_in_every_format(
    kvplan: Command,
    tmp_path: Path,
    wanted: str,
    snapshot: SnapshotAssertion,
) -> None:
    """With a cache of a given size, so that no constant of memory moves a figure."""
    shutil.copytree(EXAMPLE, tmp_path / "ci")
    words = ("check", "ci/deployments", "--offline", "--set", "kv_budget=40GiB")
    text = kvplan(*words, "--format", wanted, variables={"SOURCE_DATE_EPOCH": "0"}).stdout
    if wanted == "json":
        data = json.loads(text)
        for each in data["scenarios"]:
            del each["plan"], each["traffic"]
        text = json.dumps(data, indent=1)
    assert text.replace(__version__, "VERSION") == snapshot


def test_the_small_example(kvplan: Command) -> None:
    done = kvplan("check", str(EXAMPLE.parent / "kvplan.yaml"), "--offline", "--strict")
    assert done.returncode == 0, done.stdout


def test_paths_may_leave_the_repository_where_that_is_allowed(
    kvplan: Command, tmp_path: Path
) -> None:
    write(tmp_path, "defaults: {context: 8k}\n", "base.yaml")
    write(tmp_path, f"extends: ../base.yaml\n{one('concurrency: 4')}", "in/kvplan.yaml")
    assert kvplan("check", "in/kvplan.yaml", "--offline").returncode == 2
    assert kvplan("check", "in/kvplan.yaml", "--offline", "--allow-outside").returncode == 0


def test_lock_then_check_locked(kvplan: Command, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "ci")
    made = kvplan("lock", "ci/deployments", "--offline")
    assert (made.returncode, made.stdout) == (0, "")
    assert "13 scenarios and 6 models locked in ci/deployments/kvplan.lock." in made.stderr
    first = kvplan("check", "ci/deployments", "--locked", "--format", "json")
    # Reproducibly: also where no model could be had.
    second = kvplan("check", "ci/deployments", "--locked", "--format", "json")
    assert first.stdout == second.stdout
    assert "KV201" not in first.stdout
    drifted = kvplan("check", "ci/deployments", "--locked", "--set", "answers:context=32k")
    assert drifted.returncode == 1
    assert "KV201 Changed since the lock: context 25,600 → 32,768. It costs: " in drifted.stdout


def test_what_is_refused_is_not_locked(kvplan: Command, tmp_path: Path) -> None:
    write(tmp_path, one(f"{GOOD}\nmatrix: {{tp: [1, 3]}}"))
    made = kvplan("lock", "kvplan.yaml", "--offline")
    assert made.returncode == 0
    assert "2 scenarios" in made.stderr or "a[tp=3] is not locked" in made.stderr


def test_nothing_is_locked_when_something_cannot_be_read(kvplan: Command, tmp_path: Path) -> None:
    write(tmp_path, one(f"{GOOD}\nmodel: nobody/nothing"))
    done = kvplan("lock", "kvplan.yaml", "--offline")
    assert done.returncode == 3
    assert not (tmp_path / "kvplan.lock").exists()
    locked = kvplan("check", "kvplan.yaml", "--locked")
    assert locked.returncode == 2
    assert "There is no lock to check by." in locked.stderr


@pytest.mark.parametrize("wanted", ["json", "junit", "github", "markdown", "sarif", "text"])
def test_a_report_goes_to_a_file_whole(
    kvplan: Command, tmp_path: Path, environment: dict[str, str], wanted: str
) -> None:
    environment["SOURCE_DATE_EPOCH"] = "1000"
    write(tmp_path, one(GOOD))
    shown = kvplan("check", "kvplan.yaml", "--offline", "--format", wanted)
    done = kvplan("check", "kvplan.yaml", "--offline", "--format", wanted, "--output", "out")
    assert done.stdout == ""
    assert done.stderr == "kvplan: 1 scenario: 1 passed.\n"
    assert (tmp_path / "out").read_text(encoding="utf-8") == shown.stdout
    failed = kvplan("check", "kvplan.yaml", "--offline", "--output", "no/such/folder")
    assert failed.returncode == 2


def test_a_killed_run_leaves_the_old_file(environment: dict[str, str], tmp_path: Path) -> None:
    """The new file takes the old one's place in one step, however the process ends."""
    write(tmp_path, one(GOOD))
    target = tmp_path / "out.json"
    target.write_text("old\n", encoding="utf-8")
    code = (
        "import os, signal, sys, pathlib\n"
        "from kvplan.cli.main import run\n"
        "replace = pathlib.Path.replace\n"
        "pathlib.Path.replace = lambda *a: os.kill(os.getpid(), signal.SIGKILL)\n"
        "run(['check', 'kvplan.yaml', '--offline', '--format', 'json', '--output', 'out.json'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert target.read_text(encoding="utf-8") == "old\n"


def test_standard_input_and_the_environment(environment: dict[str, str], tmp_path: Path) -> None:
    text = write(tmp_path, one("context: 8k\nconcurrency: ${N}")).read_text(encoding="utf-8")
    for number, code in (("4", 0), ("4000", 1)):
        done = subprocess.run(
            [sys.executable, "-m", "kvplan", "check", "-", "--offline"],
            input=text,
            env={**environment, "N": number},
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert done.returncode == code


def test_a_baseline(kvplan: Command, tmp_path: Path) -> None:
    write(tmp_path, one(GOOD))
    kvplan("check", "kvplan.yaml", "--offline", "--format", "json", "--output", "plans.json")
    same = kvplan("check", "kvplan.yaml", "--offline", "--baseline", "plans.json")
    assert same.returncode == 0
    worse = kvplan(
        *("check", "kvplan.yaml", "--offline", "--baseline", "plans.json", "--set", "context=16k")
    )
    assert worse.returncode == 1
    assert "KV203 Worse than the baseline: requests " in worse.stdout
    (tmp_path / "plans.json").write_text('{"schema": "other"}', encoding="utf-8")
    broken = kvplan("check", "kvplan.yaml", "--offline", "--baseline", "plans.json")
    assert broken.returncode == 2
    assert "neither a plan nor a result" in broken.stderr


def test_diff_of_two_plans(kvplan: Command) -> None:
    for name, context in (("old.json", "8k"), ("new.json", "16k")):
        kvplan(
            *("size", LLAMA, "--gpu", "H100", "--context", context, "--offline"),
            *("--format", "json", "--output", name),
        )
    done = kvplan("diff", "old.json", "new.json")
    assert done.returncode == 0
    assert "context" in done.stdout
    assert kvplan("diff", "old.json", "new.json", "--exit-code").returncode == 1
    assert kvplan("diff", "old.json", "old.json", "--exit-code").returncode == 0
    data = json.loads(kvplan("diff", "old.json", "new.json", "--format", "json").stdout)
    assert data["schema"] == "kvplan.diff/1"
    assert kvplan("diff", "old.json").returncode == 2
    assert kvplan("diff", "old.json", "none.json").returncode == 2


def _git(folder: Path, *words: str) -> None:
    names = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "T"), ("EMAIL", "t@example.com"))
    }
    subprocess.run(
        ["git", *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **names},
        check=True,
        capture_output=True,
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose main branch has two scenarios."""
    _git(tmp_path, "init", "-q", "-b", "main")
    write(tmp_path, one(GOOD), "deploy/a.yaml")
    write(tmp_path, one(GOOD).replace("  a:", "  b:"), "deploy/b.yaml")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_diff_with_another_revision(kvplan: Command, repository: Path) -> None:
    write(repository, one(f"{GOOD}\nkv_dtype: fp8"), "deploy/a.yaml")
    write(repository, one(GOOD).replace("  a:", "  c:"), "deploy/c.yaml")
    done = kvplan("diff", "--git", "main", "deploy", "--offline", "--format", "markdown")
    assert done.returncode == 0
    assert done.stdout.startswith("<!-- kvplan diff -->\n## kvplan diff")
    assert "`main` → `the working tree`: 2 of 3 scenarios differ." in done.stdout
    assert "### `c`: added" in done.stdout
    text = kvplan("diff", "--git", "main", "deploy", "--offline").stdout
    assert "kv.dtype" in text
    assert "bfloat16 → fp8" in text


TINY = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
    "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
    "intermediate_size": 128, "vocab_size": 256, "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}  # fmt: skip
TRACE = "arrival,prompt_tokens,output_tokens\n0,100,20\n1,200,20\n2,300,20\n"


def test_diff_reads_models_and_traces_of_the_other_revision(
    kvplan: Command, repository: Path
) -> None:
    model, trace = repository / "models" / "own" / "config.json", repository / "traces" / "a.csv"
    for path, text in ((model, json.dumps(TINY)), (trace, TRACE)):
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    body = "concurrency: 4\nmodel: ../models/own\nworkload: {trace: ../traces/a.csv}"
    write(repository, one(body), "deploy/a.yaml")
    _git(repository, "add", ".")
    _git(repository, "commit", "-q", "-m", "own model")
    words = ("diff", "--git", "main", "deploy/a.yaml", "--offline", "--format", "json")
    unchanged = json.loads(kvplan(*words).stdout)
    assert [each["status"] for each in unchanged["scenarios"]] == ["same"]
    model.write_text(json.dumps({**TINY, "num_hidden_layers": 4}), encoding="utf-8")
    trace.write_text(TRACE.replace("00,20", "00,900"), encoding="utf-8")
    (changed,) = json.loads(kvplan(*words).stdout)["scenarios"]
    rows = {row["name"]: (row["old"], row["new"]) for row in changed["rows"]}
    old, new = rows["kv.bytes_per_request"]
    assert new == 2 * old
    assert rows["traffic.tokens_p99"] == (320, 1200)
    # A file that the revision does not have is said to be missing there.
    _git(repository, "mv", "models/own", "models/other")
    write(repository, one(body.replace("own", "other")), "deploy/a.yaml")
    done = kvplan("diff", "--git", "main", "deploy/a.yaml", "--offline")
    assert done.returncode == 0
    assert "model.id" in done.stdout
    assert "models/own → models/other" in done.stdout


def test_diff_sees_files_that_moved_or_are_gone(kvplan: Command, repository: Path) -> None:
    words = ("diff", "--git", "main", "deploy", "--offline", "--format", "json")
    (repository / "deploy" / "b.yaml").rename(repository / "deploy" / "moved.yaml")
    assert [each["status"] for each in json.loads(kvplan(*words).stdout)["scenarios"]] == [
        *("same", "same")
    ]
    (repository / "deploy" / "moved.yaml").unlink()
    found = json.loads(kvplan(*words).stdout)["scenarios"]
    assert {each["name"]: each["status"] for each in found} == {"a": "same", "b": "removed"}
    (repository / "deploy" / "a.yaml").unlink()
    gone = kvplan(*words)
    assert [each["status"] for each in json.loads(gone.stdout)["scenarios"]] == ["removed"] * 2


def test_the_first_scenarios_of_a_repository_are_new(kvplan: Command, repository: Path) -> None:
    write(repository, one(GOOD), "first/a.yaml")
    done = kvplan("diff", "--git", "main", "first", "--offline", "--format", "json")
    assert [each["status"] for each in json.loads(done.stdout)["scenarios"]] == ["added"]


@pytest.mark.usefixtures("repository")
def test_diff_of_nothing_and_without_a_lock(kvplan: Command) -> None:
    nothing = kvplan("diff", "--git", "main", "deploy/none.yaml")
    assert nothing.returncode == 2
    assert "There is no file or folder 'deploy/none.yaml'." in nothing.stderr
    kvplan("lock", "deploy", "--offline")
    unlocked = kvplan("diff", "--git", "main", "deploy", "--locked")
    assert unlocked.returncode == 2
    assert "main has no deploy/kvplan.lock." in unlocked.stderr


def test_diff_says_what_it_could_not_plan(kvplan: Command, repository: Path) -> None:
    write(repository, one(f"{GOOD}\ntpp: 2"), "deploy/a.yaml")
    done = kvplan("diff", "--git", "main", "deploy", "--offline")
    assert done.returncode == 0
    assert done.stderr.startswith("kvplan: not planned in the working tree: deploy/a.yaml: ")


@pytest.mark.parametrize("name", ["no-such", "--help", "-x", "main; touch here"])
def test_a_revision_is_never_taken_for_a_flag(kvplan: Command, repository: Path, name: str) -> None:
    done = kvplan("diff", f"--git={name}", "deploy", "--offline")
    assert done.returncode == 2
    assert "git knows no revision" in done.stderr
    assert not (repository / "here").exists()


def test_diff_outside_of_a_repository(kvplan: Command, tmp_path: Path) -> None:
    write(tmp_path, one(GOOD))
    done = kvplan("diff", "--git", "main", "kvplan.yaml")
    assert done.returncode == 2
    assert "is in no git repository" in done.stderr


def test_init_writes_what_check_accepts(kvplan: Command, tmp_path: Path) -> None:
    line = f"vllm serve {LLAMA} --max-model-len 16384 --max-num-seqs 32"
    words = ("init", "--from-command", line, "--gpu", "H100", "--output", "kvplan.yaml")
    assert kvplan(*words).returncode == 0
    assert kvplan("check", "kvplan.yaml", "--offline").returncode == 0
    again = kvplan(*words)
    assert again.returncode == 2
    assert "The file exists." in again.stderr
    assert kvplan(*words, "--force").returncode == 0
    shown = kvplan("init", "--model", LLAMA, "--gpu", "L4", "--engine", "sglang", "--name", "x")
    assert 'engine: "sglang==' in shown.stdout
    assert (tmp_path / "kvplan.yaml").exists()
    for bad in (("--gpu", "nonsense"), ("--engine", "nonsense"), ("--name", "a: b"), ()):
        assert kvplan("init", "--gpu", "L4", *bad).returncode == 2


@pytest.mark.parametrize("what", ["scenario", "plan", "record"])
def test_schema_prints_a_json_schema(kvplan: Command, what: str) -> None:
    done = kvplan("schema", what)
    assert done.returncode == 0
    assert json.loads(done.stdout)["$schema"].startswith("https://json-schema.org/")


def test_a_closed_pipe_is_no_error(environment: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path, one(GOOD))
    line = f"{sys.executable} -m kvplan check kvplan.yaml --offline --format json | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_folders_are_searched_for_scenario_files(kvplan: Command, tmp_path: Path) -> None:
    write(tmp_path, one(GOOD), "a/b/c.yml")
    (tmp_path / "a" / "other.yaml").write_text("kind: Deployment\n", encoding="utf-8")
    assert kvplan("check", "a", "--offline").returncode == 0
    (tmp_path / "empty").mkdir()
    done = kvplan("check", "empty")
    assert done.returncode == 2
    assert "no scenario file in that folder" in done.stderr


def test_two_hundred_scenarios_from_the_lock(kvplan: Command, tmp_path: Path) -> None:
    names = "".join(f"  s{each}: {{concurrency: {1 + each % 20}}}\n" for each in range(200))
    models = f"defaults: {{model: {LLAMA}, gpu: H100, engine: vllm==0.33.0, context: 16k}}\n"
    write(tmp_path, f"{models}scenarios:\n{names}")
    assert kvplan("lock", "kvplan.yaml", "--offline").returncode == 0
    code = (
        "import resource, sys\n"
        "from kvplan.cli.main import run\n"
        "run(['check', 'kvplan.yaml', '--locked'])\n"
        "use = resource.getrusage(resource.RUSAGE_SELF)\n"
        "peak = open('/proc/self/status').read().partition('VmHWM:')[2].split()[0]\n"
        "sys.stderr.write(f'{peak} {use.ru_utime + use.ru_stime}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    assert "200 scenarios: " in done.stdout
    kibibytes, seconds = done.stderr.split()
    assert int(kibibytes) < 300 * 1024
    assert float(seconds) < 10
