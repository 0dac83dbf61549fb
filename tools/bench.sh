#!/bin/sh
# Run every measurement in bench/, one after the other, so that none disturbs another.
set -eu
cd "$(dirname "$0")/.."

count=0
for file in bench/*.py; do
    [ -e "$file" ] || continue
    count=$((count + 1))
    printf '\n== %s\n' "$file"
    .venv/bin/python "$file"
done
echo "$count measurements run."
