#!/usr/bin/env bash
# Makes the README's pictures anew, from what the commands write: bash docs/pictures/make.sh [KVPLAN]
# Needs kvplan[xlsx,html,png], chromium, libreoffice-calc and poppler-utils.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kvplan=${1:-kvplan}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
plan=(meta-llama/Llama-3.1-8B-Instruct --gpu H100 --context 32k --concurrency 50 --offline)

shoot() { # page, picture, width, height
    chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
        --hide-scrollbars --user-data-dir="$work/profile" --window-size="$3,$4" \
        --screenshot="$2" "file://$1" >/dev/null 2>&1
}

# 1 says that the plan does not fit, which is what is shown.
"$kvplan" export "$work/plan.html" "${plan[@]}" --price 2.50 || test $? -eq 1
shoot "$work/plan.html" "$here/page.png" 900 1300

"$kvplan" export "$work/plan.xlsx" "${plan[@]}" --price 2.50 || test $? -eq 1
soffice "-env:UserInstallation=file://$work/office" --headless --convert-to pdf \
    --outdir "$work" "$work/plan.xlsx" >/dev/null 2>&1
pdftoppm -r 80 -f 2 -l 2 -png -singlefile "$work/plan.pdf" "$here/workbook"

COLUMNS=100 NO_COLOR=1 "$kvplan" size "${plan[@]}" >"$work/plan.txt" || test $? -eq 1
{
    echo '<meta charset="utf-8"><body style="margin:0;background:#101418;color:#e6e6e6">'
    echo '<pre style="font:14px/1.25 monospace;padding:16px">'
    printf '$ kvplan size %s\n' "${plan[*]}"
    sed -n '1,46p' "$work/plan.txt" | sed 's/&/\&amp;/g; s/</\&lt;/g'
} >"$work/terminal.html"
shoot "$work/terminal.html" "$here/terminal.png" 900 880

"$kvplan" sweep meta-llama/Llama-3.1-8B-Instruct --gpu H100 --offline \
    --vary 'context=4k..128k*2' --vary kv_dtype=auto,fp8 --format png --output "$here/sweep.png"
ls -l "$here"/*.png
