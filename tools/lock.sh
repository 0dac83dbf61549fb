#!/bin/sh
# Solve requirements/*.in and pyproject.toml into hash-locked files for every platform and Python >= 3.11.
# No index address is written down: the files say what is installed, the machine says from where.
set -eu
cd "$(dirname "$0")/.."

solve() { # solve OUTPUT INPUT...
    output=$1
    shift
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes ${UPGRADE:+--upgrade} \
        --no-header --no-emit-index-url --no-emit-find-links --annotation-style line \
        --output-file "$output" "$@"
    echo "$output: $(grep -c '^[a-z].*==' "$output") packages"
}

solve requirements/uv.txt requirements/uv.in
solve requirements/run.txt pyproject.toml
solve requirements/dev.txt pyproject.toml requirements/dev.in --all-extras --constraint requirements/run.txt
# What the image holds are the versions that were tested.
solve requirements/image.txt pyproject.toml --extra server --extra cassandra --constraint requirements/dev.txt
solve requirements/build.txt requirements/build.in --constraint requirements/dev.txt
solve requirements/java.txt requirements/java.in
solve requirements/bench.txt requirements/bench.in
