"""Places: the names of objects that producing jobs and processing queries write.

Guards: two runs, two tasks or two attempts never share a name; a tenant's name cannot leave its folder; two queues
never share a folder for results of rows, so that each can say which of its own are nobody's.
"""

from __future__ import annotations

import hashlib
from urllib.parse import quote, urlsplit

from fairway.runtime.urls import Place
from fairway.spark.settings import path_of

_NAME_BYTES_MAX = 200  # file systems take 255


def folder_of(text: str) -> str:
    """One folder for any text: "_" and its encoded form; a long one is cut and told apart by its hash.

    Like percent-encoding, but with "~": a server takes no prefix that somebody may decode once more.
    """
    name = "_" + quote(text, safe="").replace(".", "%2E").replace("~", "%7E").replace("%", "~")
    if len(name) > _NAME_BYTES_MAX:
        name = name[:150] + "~~" + hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return name


def under(prefix: str, *parts: str) -> str:
    """A URL below a prefix; parts are names as the object store has them."""
    encoded = urlsplit(prefix).scheme == "file"  # only these URLs are decoded before use
    return "/".join([prefix.rstrip("/"), *(quote(part) if encoded else part for part in parts)])


def task_prefix(objects: str, token: str, tenant: str, partition: int, attempt: str) -> str:
    """Where one attempt of one task writes the chunks of one tenant."""
    return under(objects, folder_of(token), folder_of(tenant), f"{partition}.{attempt}")


def marker(objects: str, token: str, nonce: str) -> str:
    """The object that says which prefixes a run was about to submit."""
    return under(objects, folder_of(token), f"commit.{nonce}")


def batches_folder(url: Place, queue: str) -> str:
    """Where results of rows of one queue go, below the root that it may share with others."""
    place = hashlib.blake2b(f"{queue} {path_of(url) or url}".encode(), digest_size=8)
    return f"batches/{place.hexdigest()}"
