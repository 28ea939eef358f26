#!/usr/bin/env bash
# Compares this engine with pypaimon-rust and the stock Parquet library on one
# core: interleaved rounds, odd ones in one order, even ones in the other, and
# the control kernel before and after each.
#
#   bench/peers/run.sh [T1|T4] [ROUNDS]
#
# PEERS_DIR is a folder with pypaimon_bench.py and go-control, which generate the
# same tables; by default a shared/performance/peers beside the project. ROWS,
# SEED, CORE and PYTHON override 1000000, 7, 1 and python3. What it installs and
# writes, about 2 GB, lies in bench/peers/.work.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
table=${1:-T1} rounds=${2:-3}
rows=${ROWS:-1000000} seed=${SEED:-7} core=${CORE:-1}
peers=${PEERS_DIR:-$here/../../../shared/performance/peers}
work=$here/.work
export CGO_ENABLED=0

if [ ! -f "$peers/pypaimon_bench.py" ]; then
  echo "run.sh: no peers in $peers; name their folder in PEERS_DIR" >&2
  exit 1
fi
peers=$(cd "$peers" && pwd)
mkdir -p "$work"
if [ ! -x "$work/venv/bin/python" ] || ! "$work/venv/bin/python" -c 'import pypaimon, pypaimon_rust' 2>/dev/null; then
  "${PYTHON:-python3}" -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet pypaimon==2.1.0 pypaimon-rust==0.4.0 pyarrow==19.0.1 numpy==2.4.6
fi
(cd "$peers/go-control" && go build -o "$work/control" .)
(cd "$here" && go build -o "$work/" ./tideline ./compare)

passes=1 tiny=
if [ "$table" = T1 ]; then passes=2 tiny=tiny; fi
pin=(taskset -c "$core")
rust=("${pin[@]}" "$work/venv/bin/python" "$peers/pypaimon_bench.py" pypaimon-rust)
ref=$work/ref-$table-$rows-$seed
if [ ! -d "$ref/db.db/five" ]; then
  "${rust[@]}" "$ref" "$table" "$rows" "$seed" 1 nowarm >/dev/null
fi
out=$work/$table.jsonl
: >"$out"

round() { # adds the round to each line
  sed -u "s/\"extra\": *{/\"round\":$1,\"extra\":{/" >>"$out"
}
control() {
  "${pin[@]}" "$work/control" "$table" "$rows" "$seed" "$work" "ref=$ref/db.db/five" | round "$1"
}
run() {
  case $2 in
    tideline) "${pin[@]}" "$work/tideline" "$work/tideline-tables" "$table" "$rows" "$seed" "$passes" $tiny "same=$ref" ;;
    rust) "${rust[@]}" "$work/rust-tables" "$table" "$rows" "$seed" "$passes" $tiny "same=$ref" ;;
  esac | round "$1"
}
for ((r = 1; r <= rounds; r++)); do
  order=(rust tideline)
  if ((r % 2 == 0)); then order=(tideline rust); fi
  for p in "${order[@]}"; do
    echo "round $r of $rounds: $p, load $(cut -d' ' -f1 /proc/loadavg 2>/dev/null || echo unknown)" >&2
    control "$r"
    run "$r" "$p"
  done
  control "$r"
done
"$work/compare" "$out"
