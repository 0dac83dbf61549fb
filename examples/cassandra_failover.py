"""An owner of a queue on Cassandra is killed; a standby takes over, and everything that was acknowledged is there.

fairway dev cassandra                # a real node on this machine; it prints its address
python cassandra_failover.py cassandra://127.0.0.1:9042/failover
"""

import signal
import subprocess
import sys
import time

import fairway

OWNER = """
import sys, fairway
with fairway.open(sys.argv[1]) as q:
    while True:
        print(q.put(b"work", tenant="acme").id, flush=True)
"""


def main(url: str) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, url], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    told = [int(owner.stdout.readline()) for _ in range(20)]  # acknowledged, so stored

    with fairway.open(url, standby=True) as q:  # returns at once; its calls wait until it is the owner
        owner.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        told += [int(line) for line in owner.stdout.read().split()]  # what it had said before it died
        owner.wait()
        found = {submission.id for submission in q.submissions()}
        print(f"taken over after {time.monotonic() - killed:.1f} s; lost: {len(set(told) - found)}")
        while leases := q.reserve(max=1000):
            q.complete(leases)
        print("left:", q.stats().chunks_waiting)
    owner.stdout.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python cassandra_failover.py cassandra://127.0.0.1:9042/failover")
    main(sys.argv[1])
