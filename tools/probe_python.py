"""Tell the set-up what one Python can do, in a form that any Python since 2.7 can print.

Prints one line: version, whether venv works, whether the C headers are there.
"""

import os
import sys
import sysconfig


def has_venv():
    # Debian ships `venv` without `ensurepip`, and then `python -m venv` fails half-way.
    try:
        import ensurepip
        import venv
    except ImportError:
        return False
    return bool(ensurepip and venv)


def has_headers():
    include = sysconfig.get_paths().get("include") or ""
    return os.path.exists(os.path.join(include, "Python.h"))


def main():
    version = ".".join(str(part) for part in sys.version_info[:3])
    venv = "venv" if has_venv() else "no-venv"
    headers = "headers" if has_headers() else "no-headers"
    print(" ".join([version, venv, headers]))


main()
