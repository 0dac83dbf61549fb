#!/bin/sh
# Run what is too long for `make test`: many simulated histories, then every test with the mark `proof`, one at a time,
# so none starves another. What it prints goes into docs/proof.md, with the commit it was run on.
set -eu
cd "$(dirname "$0")/.."

git log -1 --format='commit %h' 2>/dev/null || true
.venv/bin/fairway sim --seeds "${SEEDS:-20000}" --jobs 2

status=0
.venv/bin/python -m pytest -m proof --timeout 0 "$@" || status=$?
# 5 is pytest's word for "nothing was collected".
if [ "$status" -eq 5 ]; then
    echo "There is no proof test yet."
    exit 0
fi
exit "$status"
