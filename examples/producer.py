"""Five hundred producers that each wait for their own results, in one event loop, while workers serve them fairly."""

import asyncio

import fairway


async def produce(q: fairway.AsyncQueue, number: int) -> bool:
    """Submit, wait, collect. The key makes it safe to run again after a crash."""
    words = [b"%d-%d" % (number, i) for i in range(4)]
    job = await q.submit(words, tenant=f"customer {number % 20}", key=f"report-{number}")
    ended = await q.wait(job.id, 60)
    results = [result.data async for result in q.results(job.id)]
    return ended.state == "completed" and results == [word.upper() for word in words]


async def work(q: fairway.AsyncQueue) -> None:
    while leases := await q.reserve(max=50, wait_seconds=2):
        await q.complete(leases, results=[lease.payload.upper() for lease in leases])


async def main() -> None:
    async with fairway.aio.open("producers.db") as q:
        workers = [asyncio.create_task(work(q)) for _ in range(4)]
        right = await asyncio.gather(*(produce(q, number) for number in range(500)))
        print(sum(right), "of", len(right), "producers have their results")
        await asyncio.gather(*workers)


asyncio.run(main())
