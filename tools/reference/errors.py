"""The page of errors, from errors.py.

Guards: a code that a caller may meet is on the page, under the branch that says whose turn it is.
"""

from __future__ import annotations

import inspect

from fairway import errors
from tools.reference.writing import code, opening, table

BRANCHES = (
    (errors.CallerError, "The call must change", "Repeating it as it is gives the same answer."),
    (errors.StateError, "The queue has moved on", "The call was right once. Look, then decide."),
    (errors.OurError, "Fairway could not", "Nothing acknowledged is lost. Each says whether the call may be repeated."),
)  # fmt: skip


def page() -> str:
    parts = [
        opening(
            "Errors",
            "src/fairway/errors.py",
            "Every error is a `fairway.FairwayError` with a `code` that never changes, an HTTP `status`, and `details`,"
            " a map. Over HTTP and from `fairway --json` the same code comes back, and the Python client raises the"
            " same class again.",
        )
    ]
    for branch, title, words in BRANCHES:
        rows = [
            (code(kind.__name__), code(kind.code), str(kind.status), inspect.getdoc(kind) or "")
            for kind in below(branch)
        ]
        parts += [f"\n## {title}\n", f"{words}\n", table(("class", "code", "status", "what it says"), rows)]
    return "\n".join(parts)


def below(kind: type[errors.FairwayError]) -> list[type[errors.FairwayError]]:
    """A class and all under it, in the order in which they are written."""
    found = [kind]
    for child in kind.__subclasses__():
        found += below(child)
    return found
