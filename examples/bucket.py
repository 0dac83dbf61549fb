"""A bucket queue: equal processes on one file, no host; one is killed with messages in hand, and nothing is lost."""

import multiprocessing
import os
import signal

import fairway


def careless(path: str) -> None:
    """Takes messages and never comes back."""
    q = fairway.open(path, queue="events", kind="bucket")
    print("killed with", len(q.reserve(max=20, lease_seconds=1)), "messages", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def careful(path: str, done: "multiprocessing.Queue[int]") -> None:
    """Works until nothing comes any more."""
    count = 0
    with fairway.open(path, queue="events", kind="bucket") as q:
        while leases := q.reserve(max=20, wait_seconds=4):
            count += sum(outcome == "done" for outcome in q.complete(leases))
    done.put(count)


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    with fairway.open("events.db", queue="events", kind="bucket") as q:
        q.put_many([b"event %d" % i for i in range(200)])
        victim = spawn.Process(target=careless, args=("events.db",))
        victim.start()
        victim.join()
        done = spawn.Queue()
        workers = [spawn.Process(target=careful, args=("events.db", done)) for _ in range(2)]
        for worker in workers:
            worker.start()
        print(sum(done.get(timeout=60) for _ in workers), "messages completed by the others")
        for worker in workers:
            worker.join()
