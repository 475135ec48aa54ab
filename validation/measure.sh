#!/usr/bin/env bash
# Measures a fixed matrix of plans on this machine's GPU: bash validation/measure.sh [OUT.jsonl]
#
# One JSON object a line goes to OUT (default: measured.jsonl in this folder's parent): what was
# planned, what was found, whether they agree. KVPLAN names the command, MEASURE_SECONDS the time
# after which no further plan is begun (default 350: with one plan's run under 8 minutes in all).
# MEASURE_TINY=1 runs the same on the CPU in seconds, with tensors that have no memory.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:-measured.jsonl}
kvplan=${KVPLAN:-kvplan}
most=${MEASURE_SECONDS:-350}
if ! command -v "$kvplan" >/dev/null; then
    echo "There is no command $kvplan: install it, or name it with KVPLAN=..." >&2
    exit 2
fi
: >"$out"

if [[ ${MEASURE_TINY:-0} == 1 ]]; then
    device=(--device fake --gpu H100-SXM-80GB -o max_num_batched_tokens=256 -o max_num_seqs=8)
else
    device=(--device cuda)
fi

# MODEL and flags of a plan: dense, tied, window, packed, experts, latent, hybrid, sharded.
matrix=(
    "Qwen/Qwen3-0.6B"
    "Qwen/Qwen3-8B"
    "meta-llama/Llama-3.1-8B-Instruct"
    "meta-llama/Llama-3.1-8B-Instruct --weights fp8"
    "google/gemma-3-12b-it"
    "hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4 --tp 2"
    "Qwen/Qwen3-30B-A3B"
    "openai/gpt-oss-20b"
    "deepseek-ai/DeepSeek-V2-Lite"
    "ibm-granite/granite-4.0-h-tiny"
    "meta-llama/Llama-3.1-70B-Instruct --tp 4"
    "openai/whisper-large-v3"
)

agreed=0 differed=0 failed=0
for plan in "${matrix[@]}"; do
    if ((SECONDS > most)); then
        echo "left out for lack of time: $plan" >&2
        failed=$((failed + 1))
        continue
    fi
    read -r -a words <<<"$plan"
    # A context that every model takes, so that pools compare.
    line=$(timeout 120 "$kvplan" measure "${words[@]}" "${device[@]}" --context 448 --offline \
        --yes --format json | python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)))' 2>/dev/null)
    if [[ -z $line ]]; then
        echo "no result: $plan" >&2
        failed=$((failed + 1))
        continue
    fi
    printf '%s\n' "$line" >>"$out"
    if [[ $line == *'"outcome": "off"'* ]]; then
        echo "differs (${SECONDS}s): $plan" >&2
        differed=$((differed + 1))
    else
        echo "agrees (${SECONDS}s): $plan" >&2
        agreed=$((agreed + 1))
    fi
done

echo "$agreed agree, $differed differ, $failed without a result; ${SECONDS}s; $out" >&2
((failed == 0))
