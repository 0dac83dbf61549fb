"""Ten lines: put work in, take it out, collect the results."""

import fairway

with fairway.open("quickstart.db") as q:
    sub = q.submit([b"one", b"two", b"three"], tenant="acme")
    while leases := q.reserve(max=10):
        for lease in leases:
            q.complete(lease, result=lease.payload.upper())
    print(q.wait(sub.id, 60).state, [result.data for result in q.results(sub.id)])
