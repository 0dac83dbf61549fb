"""A ring between processes: a worker is killed with a message in its hands, and another gets it."""

import multiprocessing
import os
import signal

import fairway


def careless(ring: fairway.Ring) -> None:
    """Takes a message and never comes back."""
    lease = ring.get()
    assert lease is not None
    os.kill(os.getpid(), signal.SIGKILL)


def careful(ring: fairway.Ring) -> None:
    """Works until nothing comes any more."""
    with ring:
        while lease := ring.get(timeout=3):
            with lease:  # acknowledged at the end of this block, unless it raises
                print("worked on", lease.payload.decode(), flush=True)


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    name = f"fairway-example-{os.getpid()}"  # a name without a slash lies in shared memory
    with fairway.Ring.create(name, 1 << 16) as ring:
        ring.put(b"an order")
        for work in (careless, careful):
            process = spawn.Process(target=work, args=(ring,))  # it attaches there
            process.start()
            process.join()
        print("delivered again:", ring.stats().redelivered)
    fairway.Ring.remove(name)
