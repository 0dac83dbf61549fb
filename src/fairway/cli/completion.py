"""`fairway completion`: a script with which a shell completes commands and options."""

from __future__ import annotations

from typing import Literal


def completion(shell: Literal["bash", "zsh", "fish"], /) -> int:
    """Print a script that teaches a shell to complete `fairway`.

    Parameters
    ----------
    shell
        The shell.
    """
    from fairway.cli.app import app

    print(app.generate_completion(shell=shell))
    return 0
