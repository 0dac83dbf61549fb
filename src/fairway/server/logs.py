"""Logs as lines of JSON on standard error.

Guards: what is logged of a request is its route, status and time, and the id of its token: no secret, no payload.
"""

from __future__ import annotations

import logging
import os
import time

import msgspec


class Lines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "process": os.getpid(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "told", {}),
        }
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(told, enc_hook=repr).decode()


def configure(level: str) -> None:
    """Send the logs of this process to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    # What they say of every connection hides what matters, and has headers in it.
    for name in ("uvicorn.error", "httpcore2", "httpx2"):
        logging.getLogger(name).setLevel(logging.WARNING)
