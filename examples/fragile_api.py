"""A pool of workers that calls an API which bears three calls at a time, whoever they are for."""

import threading
import time

import fairway
from fairway import Fair, MaxSimultaneous

calls, most, lock = 0, 0, threading.Lock()


def fragile(payload: bytes) -> bytes:
    """Somebody else's service: it breaks if more than three call at once."""
    global calls, most
    with lock:
        calls += 1
        most = max(most, calls)
        if calls > 3:
            raise RuntimeError("overloaded")
    time.sleep(0.01)
    with lock:
        calls -= 1
    return payload[::-1]


def work(q: fairway.Queue) -> None:
    while leases := q.reserve(wait_seconds=1):  # under the queue's own strategy
        for lease in leases:
            try:
                q.complete(lease, result=fragile(lease.payload))
            except RuntimeError as error:
                q.fail(lease, error)


with fairway.open(":memory:") as q:
    q.configure(strategy=str(MaxSimultaneous("api", 3, Fair)), strategy_locked=True)
    jobs = [
        q.submit([b"order %d" % i for i in range(40)], tenant=tenant, metadata={"api": "partner"})
        for tenant in ("acme", "zenith", "whale")
    ]
    workers = [threading.Thread(target=work, args=(q,)) for _ in range(12)]
    for worker in workers:
        worker.start()
    states = [q.wait(job.id, 60).state for job in jobs]
    for worker in workers:
        worker.join()
    print(states, "by 12 workers; most calls at a time:", most)
