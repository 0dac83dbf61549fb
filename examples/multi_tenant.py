"""One queue for many customers: a whale, paying ones and free ones; who is through when, and what weights do."""

from collections import Counter

import fairway

TENANTS = {
    "whale": (5000, 1),
    "paying-1": (300, 4),
    "paying-2": (300, 4),
    "free-1": (300, 1),
    "free-2": (300, 1),
}

with fairway.open("tenants.db") as q:
    for tenant, (chunks, weight) in TENANTS.items():  # the whale comes first
        q.submit(chunks=chunks, tenant=tenant, weight=weight)

    handed = 0
    shares: Counter[str] = Counter()
    while leases := q.reserve(max=100):
        q.complete(leases)
        handed += len(leases)
        if handed <= 600:
            shares.update(lease.tenant for lease in leases)
        waiting = {tenant.name for tenant in q.tenants() if tenant.waiting}
        for tenant in sorted({lease.tenant for lease in leases} - waiting):
            print(f"{tenant} is through after {handed} of 6200 chunks")

    print("of the first 600:", dict(sorted(shares.items())))
