#!/usr/bin/env bash
# `scripts/bench view`: shows generated runs in the Chromium of the tests, which renders in software.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/setup --browser
cargo build --quiet --release -p urscope-command --bin urscope --example trace-generator
release=${CARGO_TARGET_DIR:-target}/release
work=$(mktemp -d)
trap 'kill "${view:-}" 2>/dev/null || true; rm -rf "$work"' EXIT

# Serves a run; sets `url`, and prints the time until the run could be shown.
look() {
  local began now
  rm -f "$work/url"
  began=$(date +%s%N)
  "$release/urscope" view --no-open --port 0 "$1" >"$work/url" 2>"$work/log" &
  view=$!
  until [[ -s $work/url ]]; do kill -0 "$view"; sleep 0.01; done
  url=$(head -1 "$work/url")
  node -e 'fetch(process.argv[1] + "api/run").then((answer) => answer.text())' "$url"
  now=$(date +%s%N)
  echo "urscope view read the run and answered after $(((now - began) / 1000000)) ms"
}
close() {
  kill "$view"
  wait "$view" || true
}

# Each cycle of a process makes six calls, and two lives: a handle and an opening.
"$release/examples/trace-generator" "$work/calls" --ranks 8 --cycles 20834 --leak 3 --double 2
look "$work/calls"
node tests/browser/measure.mjs paint "$url"
close
rm -rf "$work/calls"

echo
"$release/examples/trace-generator" "$work/lives" --ranks 8 --cycles 6250 --leak 3 --double 2
look "$work/lives"
node tests/browser/measure.mjs pan "$url"
close
rm -rf "$work/lives"

# A million handles and a million openings of 1,000 ranks.
echo
"$release/examples/trace-generator" "$work/ranks" --ranks 1000 --cycles 1000 --leak 1 --double 1 --binary
look "$work/ranks"
node tests/browser/measure.mjs paint "$url"
node tests/browser/measure.mjs load "$url"
node tests/browser/measure.mjs pan "$url"
close
