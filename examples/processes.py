"""Four worker processes on one file: the first process hosts the queue, the others attach to it by opening it."""

import multiprocessing

import fairway


def work(q: fairway.Queue) -> None:
    while leases := q.reserve(max=10, wait_seconds=1):
        q.complete(leases, results=[lease.payload.upper() for lease in leases])


if __name__ == "__main__":
    with fairway.open("work.db") as q:
        job = q.submit([b"line %d" % i for i in range(100)], tenant="acme")
        spawn = multiprocessing.get_context("spawn")
        workers = [spawn.Process(target=work, args=(q,)) for _ in range(4)]
        for worker in workers:
            worker.start()
        print(q.wait(job.id, 60).state)
        for worker in workers:
            worker.join()
        print(sum(1 for result in q.results(job.id) if result.read().startswith(b"LINE")), "results")
