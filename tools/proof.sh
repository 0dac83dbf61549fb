#!/bin/sh
# Run what is too long for `make test`: many simulated histories, then every test with the mark `proof`, file by file, so
# that none starves another and one that fails or dies takes no other with it. Each leaves a row in docs/histories/rows; at the end
# tools/proof.py makes the tables of docs/reliability.md from them. Arguments choose among the tests as those of pytest do: `sh tools/proof.sh
# tests/kill -k server`; `sh tools/proof.sh sim` makes the simulations alone.
set -eu
cd "$(dirname "$0")/.."
kept=build/proof
mkdir -p "$kept"
failed=""
python=.venv/bin/python

# An interrupted or selective run keeps the rows of what it does not run again.
simulate() { # the name of its row, how many seeds, how many at a time, then what `fairway sim` is given
    name=$1 seeds=$2 part=$3 start=0
    shift 3
    : >"$kept/sim.out"
    while [ "$start" -lt "$seeds" ]; do
        many=$((seeds - start < part ? seeds - start : part)) status=0
        .venv/bin/fairway sim --json --save "$kept/histories" --start "$start" --seeds "$many" --jobs 2 "$@" \
            >>"$kept/sim.out" || status=$?
        [ "$status" -le 1 ] || break # 1: it found something; more: it died, and its row says how many seeds are missing
        start=$((start + many))
    done
    $python -m tools.proof --seeds "$seeds" "$name" <"$kept/sim.out" || failed="$failed sim"
    rm -f "$kept/sim.out"
}

if [ "$#" -eq 0 ] || [ "$1" = sim ]; then
    simulate 'simulated histories' "${SEEDS:-100000}" 2000 --steps "${STEPS:-150}"
    simulate 'simulated histories on an imagined Cassandra' "${CASSANDRA_SEEDS:-2000}" 2000 --store cassandra
    simulate 'long simulated histories' "${LONG_SEEDS:-200}" 20 --steps 2000
    simulate 'simulated bucket queues' "${BUCKET_SEEDS:-10000}" 2000 --kind bucket
fi

if [ "${1:-}" != sim ]; then
    status=0
    $python -m pytest -m proof --collect-only -q "$@" >"$kept/collected" || status=$?
    case $status in
    0 | 5) ;; # 5: there is none
    *)
        cat "$kept/collected"
        failed="$failed collecting"
        ;;
    esac
    for file in $(sed -n 's/^\([^ ]*\.py\)::.*/\1/p' "$kept/collected" | sort -u); do
        echo "== $file"
        sed -n "\\|^$file::|p" "$kept/collected" >"$kept/chosen"
        touch "$kept/began"
        status=0
        $python -m pytest -m proof --timeout 0 -rA -s "@$kept/chosen" </dev/null || status=$?
        case $status in
        0) ;;
        1 | 2) failed="$failed $file" ;; # each test that failed has left its row
        *)
            failed="$failed $file"
            $python -m tools.proof --died "$file" "$kept/began" <"$kept/chosen"
            ;;
        esac
    done
fi

$python -m tools.proof || failed="$failed tools/proof.py"
if [ -n "$failed" ]; then
    echo "Failed:$failed"
    exit 1
fi
