#!/bin/sh
# Run what is too long for `make test`: many simulated histories, then every test with the mark `proof`, file by file, so
# that none starves another and one that fails or dies takes no other with it. Each leaves a row in docs/histories/rows; at the end
# tools/proof.py makes the table of docs/reliability.md from them. Arguments are given to pytest: `sh tools/proof.sh tests/kill`.
set -eu
cd "$(dirname "$0")/.."
kept=build/proof
mkdir -p "$kept"
failed=""

# An interrupted or selective run keeps the rows of what it does not run again.
simulate() { # the name of its row, then what `fairway sim` is given
    name=$1
    shift
    .venv/bin/fairway sim --json --save "$kept/histories" "$@" >"$kept/sim.out" || failed="$failed sim"
    .venv/bin/python -m tools.proof "$name" <"$kept/sim.out" || failed="$failed sim"
    rm -f "$kept/sim.out"
}

if [ "$#" -eq 0 ]; then
    simulate 'simulated histories' --seeds "${SEEDS:-20000}" --steps "${STEPS:-150}" --jobs 2
    simulate 'simulated histories on an imagined Cassandra' --store cassandra --seeds "${CASSANDRA_SEEDS:-2000}" --jobs 2
    simulate 'simulated bucket queues' --kind bucket --seeds "${BUCKET_SEEDS:-10000}" --jobs 2
fi

files=$(.venv/bin/python -m pytest -m proof --collect-only -q "$@" | sed -n 's/^\([^ ]*\.py\)::.*/\1/p' | sort -u)
for file in $files; do
    echo "== $file"
    .venv/bin/python -m pytest -m proof --timeout 0 -rA -s "$file" </dev/null || failed="$failed $file"
done

.venv/bin/python -m tools.proof || failed="$failed tools/proof.py"
if [ -n "$failed" ]; then
    echo "Failed:$failed"
    exit 1
fi
