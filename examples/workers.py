"""Two tenants, four workers, one failure: fair turns, a retry, a dead letter."""

import threading

import fairway

q = fairway.open(":memory:")
q.configure(attempts_max=2, retry_delay_seconds=0.1)
q.put_many([b"%d" % i for i in range(200)], tenant="whale")
q.put_many([b"1", b"2", b"broken"], tenant="small")


def work() -> None:
    while leases := q.reserve(max=5, wait_seconds=1):
        for lease in leases:
            try:
                q.complete(lease, result=b"%d" % (int(lease.payload) * 2))
            except ValueError as error:
                q.fail(lease, error)


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

for letter in q.dead():
    print(f"tenant {letter.tenant}: given up after {letter.attempts} attempts: {letter.error}")
print(sum(1 for _ in q.submissions(state="completed")), "done,", q.stats().groups, "commits")
q.close()
