#!/bin/sh
# Make .venv: a Python >= 3.11, uv at its pinned hash, every locked package, and Fairway itself.
# Plain sh, so that a machine with a wrong Python, or none, still gets an answer that helps.
# Run by make; PYTHON=/path/to/python names the Python to use.
set -eu
cd "$(dirname "$0")/.."
unset VIRTUAL_ENV PYTHONHOME PYTHONPATH

venv=.venv
newest_first="python3.14 python3.13 python3.12 python3.11 python3 python"
started=$(date +%s)
log=$(mktemp)
trap 'rm -f "$log"' EXIT

line() { printf '  %-9s %s\n' "$1" "$2"; }

stop() { # stop PROBLEM CURE...
    printf '\nFairway cannot be set up: %s\n' "$1" >&2
    shift
    for cure in "$@"; do printf '  -> %s\n' "$cure" >&2; done
    exit 1
}

probe() { "$1" tools/probe_python.py 2>/dev/null; }

new_enough() { # new_enough 3.11.7
    major=${1%%.*}
    rest=${1#*.}
    minor=${rest%%.*}
    [ "$major" -gt 3 ] || { [ "$major" -eq 3 ] && [ "$minor" -ge 11 ]; }
}

minor_of() { echo "$1" | cut -d. -f1,2; }

native_cure="Debian, Ubuntu: apt install build-essential; Fedora: dnf install gcc; macOS: xcode-select --install"
headers_cure() { echo "Debian, Ubuntu: apt install python$(minor_of "$1")-dev; Fedora: dnf install python3-devel"; }

choose_python() { # sets python and facts, or stops with what was wrong with each candidate
    python='' old='' bare='' dead=''
    for candidate in ${PYTHON:-$newest_first}; do
        # A name on PATH may still not run: pyenv leaves such shims.
        command -v "$candidate" >/dev/null 2>&1 || continue
        if ! facts=$(probe "$candidate"); then
            dead="${dead:+$dead, }$candidate"
            continue
        fi
        version=${facts%% *}
        if ! new_enough "$version"; then
            old="${old:+$old, }$candidate is $version"
        elif [ "${facts#* no-venv}" != "$facts" ]; then
            bare=${bare:-$version}
        else
            python=$candidate
            return
        fi
    done
    [ -z "$bare" ] || stop "Python $bare has no working venv module." \
        "Debian, Ubuntu: apt install python$(minor_of "$bare")-venv" \
        "or name another Python: make setup PYTHON=/path/to/python3.11"
    get="Debian 12, Ubuntu 24.04: apt install python3 python3-venv; macOS: brew install python@3.12"
    [ -z "$old" ] || stop "it needs Python 3.11 or newer, and $old." "$get" \
        "or name another Python: make setup PYTHON=/path/to/python3.11"
    [ -z "${PYTHON:-}" ] || stop "PYTHON=$PYTHON does not run." "name a Python 3.11 or newer, or leave PYTHON out"
    stop "it needs Python 3.11 or newer, and there is none on PATH${dead:+ that runs ($dead does not)}." "$get"
}

check_native() { # sets lacking and lacking_cure to what a C build would miss
    lacking='' lacking_cure=''
    if ! command -v "${CC:-cc}" >/dev/null 2>&1 && ! command -v gcc >/dev/null 2>&1; then
        lacking="a C compiler" lacking_cure=$native_cure
    elif [ "${facts#* no-headers}" != "$facts" ]; then
        lacking="the C headers of Python ${facts%% *}" lacking_cure=$(headers_cure "${facts%% *}")
    fi
    [ -n "$lacking" ] || return 0
    line note "no sign of $lacking; needed only where a package has no wheel"
    if [ -n "$(find src -name '*.c' 2>/dev/null)" ]; then
        line note "fairway.Ring is left out without it -> $lacking_cure"
    fi
}

step() { # step NAME DONE COMMAND...
    name=$1 done=$2
    shift 2
    since=$(date +%s)
    # The packages take minutes on a slow line; a terminal says what is under way, in the line that the outcome takes.
    [ ! -t 1 ] || printf '  %-9s %s' "$name" "..."
    if ! "$@" >"$log" 2>&1; then
        [ ! -t 1 ] || echo
        tail -n 20 "$log" >&2
        [ -z "$lacking" ] || stop "the step '$name' failed, and this machine lacks $lacking." "$lacking_cure"
        stop "the step '$name' failed; its last lines are above." \
            "check the network and the free disk, then run make again" \
            "behind a mirror: pip's own settings (index-url, cert) are used for uv too"
    fi
    [ ! -t 1 ] || printf '\r'
    line "$name" "$done, $(($(date +%s) - since)) s"
}

follow_pip() { # uv does not read pip's settings; a machine whose pip works should need no second set-up
    settings=$("$venv/bin/python" -m pip config list 2>/dev/null) || return 0
    setting() { echo "$settings" | sed -n "s/^[^=]*\.$1='\(.*\)'$/\1/p" | tail -n 1; }
    index=$(setting index-url)
    cert=$(setting cert)
    [ -z "$index" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"
    [ -z "$cert" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$cert}"
}

java_runs() { # java_runs PROGRAM: whether it is a Java that Spark can use
    major=$("$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
    [ "${major:-0}" -ge 17 ] 2>/dev/null
}

echo "Setting up Fairway in $venv"
if facts=$(probe "$venv/bin/python") && new_enough "${facts%% *}" && "$venv/bin/python" -m pip --version >/dev/null 2>&1
then
    line python "${facts%% *}, already in $venv"
    check_native
else
    choose_python
    line python "${facts%% *} ($python)"
    check_native
    rm -rf "$venv"
    step venv made "$python" -m venv "$venv"
fi

uv_pin=$(sed -n 's/^uv==\([^ ]*\).*/\1/p' requirements/uv.txt)
case $("$venv/bin/uv" --version 2>/dev/null || true) in
    "uv $uv_pin"*) line uv "$uv_pin, already there" ;;
    *) step uv "$uv_pin" "$venv/bin/python" -m pip install --quiet --require-hashes -r requirements/uv.txt ;;
esac

follow_pip
# Compiled once here: where bytecode may not be written, every start of a tool would compile it again.
export UV_COMPILE_BYTECODE=1
locked=$(grep -c '^[a-z].*==' requirements/dev.txt)
step packages "$locked locked, every hash checked" \
    "$venv/bin/uv" pip sync --quiet --python "$venv/bin/python" --require-hashes requirements/dev.txt
step fairway "installed from src" \
    "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --editable .
if { [ -n "${JAVA_HOME:-}" ] && java_runs "$JAVA_HOME/bin/java"; } || java_runs java; then
    line java "found, for Spark"
else
    step java "none of 17 or newer here; brought by pip, for Spark" \
        "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --require-hashes -r requirements/java.txt
fi
touch "$venv/.ready"
echo "Ready in $(($(date +%s) - started)) s."
