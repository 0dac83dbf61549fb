"""A thousand waiting consumers in one event loop, and no thread for any of them."""

import asyncio

import fairway


async def consume(q: fairway.AsyncQueue) -> int:
    done = 0
    while leases := await q.reserve(wait_seconds=1):
        await q.complete(leases)
        done += len(leases)
    return done


async def main() -> None:
    async with fairway.aio.open(":memory:") as q:
        consumers = [asyncio.create_task(consume(q)) for _ in range(1000)]
        await q.put_many([b"hello"] * 5000, tenant="acme")
        print(sum(await asyncio.gather(*consumers)), "messages by", len(consumers), "consumers")


asyncio.run(main())
