"""A small S3 for tests: objects by path, kept in memory, in a thread of the test.

It knows what obstore asks for: PUT (also only if there is none), GET, HEAD, DELETE, the list and the delete of many.
Guards: a request without a signature is refused, so that what passes here was really made for S3.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

PAGE = 50  # names in one answer to a list, so that lists have several


class Bucket(ThreadingHTTPServer):
    """The server; every bucket is there from the beginning."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.objects: dict[str, tuple[bytes, datetime]] = {}  # by "bucket/key"
        self.asked: Counter[str] = Counter()
        self.lock = threading.Lock()

    @property
    def environ(self) -> dict[str, str]:
        """What a process needs to find it."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server_port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Bucket

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: tests ask the server."""

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        key = unquote(parts.path).lstrip("/").rstrip("/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        what = "LIST" if "list-type" in query else "DELETE MANY" if "delete" in query else self.command
        with self.server.lock:
            self.server.asked[what] += 1
            if not self.headers.get("Authorization", "").startswith("AWS4-HMAC-SHA256 Credential=test/"):
                return self._answer(403, _error("AccessDenied"))
            {
                "PUT": self._put,
                "GET": self._get,
                "HEAD": self._get,
                "DELETE": self._delete,
                "LIST": self._list,
                "DELETE MANY": self._delete_many,
            }[what](key, query, body)

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = _serve

    def _put(self, key: str, query: dict[str, str], body: bytes) -> None:
        if self.headers.get("If-None-Match") == "*" and key in self.server.objects:
            return self._answer(412, _error("PreconditionFailed"))
        self.server.objects[key] = body, datetime.now(UTC).replace(microsecond=0)
        self._answer(200, b"", ETag=_etag(body))

    def _get(self, key: str, query: dict[str, str], body: bytes) -> None:
        found = self.server.objects.get(key)
        if found is None:
            return self._answer(404, _error("NoSuchKey"))
        blob, made = found
        self._answer(200, blob, **{"ETag": _etag(blob), "Last-Modified": format_datetime(made, usegmt=True)})

    def _delete(self, key: str, query: dict[str, str], body: bytes) -> None:
        self.server.objects.pop(key, None)
        self._answer(204, b"")

    def _delete_many(self, bucket: str, query: dict[str, str], body: bytes) -> None:
        names = [one.text or "" for one in ElementTree.fromstring(body).iter() if one.tag.endswith("Key")]
        for name in names:
            self.server.objects.pop(f"{bucket}/{name}", None)
        gone = "".join(f"<Deleted><Key>{escape(name)}</Key></Deleted>" for name in names)
        self._answer(200, f"<DeleteResult>{gone}</DeleteResult>".encode())

    def _list(self, bucket: str, query: dict[str, str], body: bytes) -> None:
        within = sorted(
            name[len(bucket) + 1 :] for name in self.server.objects if name.startswith(f"{bucket}/")
        )
        after = query.get("continuation-token", query.get("start-after", ""))
        names = [name for name in within if name.startswith(query.get("prefix", "")) and name > after]
        shown, more = names[:PAGE], len(names) > PAGE
        rows = "".join(self._row(f"{bucket}/{name}", name) for name in shown)
        token = f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>" if more else ""
        told = f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{rows}"
        self._answer(200, f"<ListBucketResult>{told}</ListBucketResult>".encode())

    def _row(self, full: str, name: str) -> str:
        blob, made = self.server.objects[full]
        return (
            f"<Contents><Key>{escape(name)}</Key><Size>{len(blob)}</Size><ETag>{escape(_etag(blob))}</ETag>"
            f"<LastModified>{made.isoformat().replace('+00:00', '.000Z')}</LastModified></Contents>"
        )

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _etag(blob: bytes) -> str:
    return f'"{hashlib.md5(blob).hexdigest()}"'


def _error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()


@contextmanager
def s3() -> Iterator[Bucket]:
    with Bucket() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="test s3")
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
