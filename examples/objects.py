"""Payloads and results as objects: uploaded while iterating, read when looked at, collected in order."""

import tempfile

import fairway

with tempfile.TemporaryDirectory() as folder, fairway.open(":memory:") as q:
    pages = (f"page {i} of a large book".encode() for i in range(20))
    book = q.submit(pages, objects=f"file://{folder}/book", tenant="library", metadata={"language": "en"})
    while leases := q.reserve(max=8):
        q.complete(leases, results=[lease.payload.title() for lease in leases])
    results = list(q.results(book))
    print(q.submission(book).state, len(results), "results, the last:", results[-1].read().decode())
