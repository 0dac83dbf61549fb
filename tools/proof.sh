#!/bin/sh
# Run what is too long for `make test`: every test with the mark `proof`, one at a time, so none starves another.
set -eu
cd "$(dirname "$0")/.."

status=0
.venv/bin/python -m pytest -m proof --timeout 0 "$@" || status=$?
# 5 is pytest's word for "nothing was collected".
if [ "$status" -eq 5 ]; then
    echo "There is no proof test yet."
    exit 0
fi
exit "$status"
