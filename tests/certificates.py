"""Certificates for tests of TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.programs import need_program


def certificate(folder: Path, name: str, of: str = "IP:127.0.0.1") -> tuple[str, str]:
    """A certificate for this machine, or another, that vouches for itself, and its key."""
    cert, key = str(folder / f"{name}.pem"), str(folder / f"{name}.key")
    make = [
        need_program("openssl"),
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ]
    names = ["-days", "30", "-subj", "/CN=fairway test", "-addext", f"subjectAltName={of}"]
    subprocess.run([*make, *names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key
