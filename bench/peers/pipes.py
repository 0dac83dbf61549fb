"""The ways between processes that the ring is measured beside, each as a producer, a consumer and an end.

A way is made before the fork. `produce` sends a message so often, in batches; `consume` counts until the end comes, and
gives how many it was; `finish` sends every consumer its end. An empty message is an end.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

import fairway

CONTEXT = multiprocessing.get_context("fork")
ROOM_BYTES = 1 << 24
_LENGTH = struct.Struct("<I")
Taker = Callable[[int], tuple[list[bytes], Callable[[], object]]]


def nothing() -> None:
    """How what has no leases acknowledges."""


class Way:
    """What all have in common."""

    batches = False  # whether it has calls for many messages at once

    def __init__(self, folder: Path, producers: int, consumers: int, size: int) -> None:
        self.folder, self.producers, self.consumers, self.size = folder, producers, consumers, size
        self.make()

    def make(self) -> None: ...

    def produce(self, who: int, times: int, message: bytes, batch: int) -> None:
        raise AssertionError

    def consume(self, who: int, batch: int) -> int:
        raise AssertionError

    def finish(self) -> None: ...

    def close(self) -> None: ...

    def putter(self) -> Callable[[bytes], object]:
        """In a process of a storm: what puts one message."""
        raise AssertionError

    def taker(self) -> Taker:
        """In a process of a storm: what takes so many at most, at least one, and acknowledges them."""
        raise AssertionError


def count(get_many: Callable[[], list[bytes]], put_back: Callable[[bytes], object]) -> int:
    """Messages of a shared queue until an end; ends that were meant for others go back."""
    total = 0
    while True:
        messages = get_many()
        for place, message in enumerate(messages):
            if not message:
                for _ in messages[place + 1 :]:
                    put_back(b"")
                return total
            total += 1


class Ring(Way):
    batches = True
    crc = False

    def make(self) -> None:
        self.ring = fairway.Ring.create(self.folder / "ring", ROOM_BYTES, crc=self.crc)

    def produce(self, who: int, times: int, message: bytes, batch: int) -> None:
        with fairway.Ring.attach(self.folder / "ring") as ring:
            if batch == 1:
                for _ in range(times):
                    ring.put(message)
                return
            messages = [message] * batch
            for _ in range(times // batch):
                ring.put_many(messages)

    def consume(self, who: int, batch: int) -> int:
        with fairway.Ring.attach(self.folder / "ring") as ring:
            if batch > 1:
                return count(lambda: ring.pop_many(batch), ring.put)
            total = 0
            while ring.pop():
                total += 1
            return total

    def finish(self) -> None:
        self.ring.put_many([b""] * self.consumers)

    def close(self) -> None:
        self.ring.close()
        fairway.Ring.remove(self.folder / "ring")

    def putter(self) -> Callable[[bytes], object]:
        return fairway.Ring.attach(self.folder / "ring").put

    def taker(self) -> Taker:
        ring = fairway.Ring.attach(self.folder / "ring")

        def take(most: int) -> tuple[list[bytes], Callable[[], object]]:
            lease = ring.get_many(most)
            return lease.payloads, lease.ack

        return take


class CheckedRing(Ring):
    crc = True


class LeasingRing(Ring):
    """With a lease for every message, acknowledged one by one."""

    batches = False

    def consume(self, who: int, batch: int) -> int:
        with fairway.Ring.attach(self.folder / "ring") as ring:
            total = 0
            while (lease := ring.get()) is not None:
                lease.ack()
                if not lease.payload:
                    return total
                total += 1
            return total


class Queue(Way):
    def make(self) -> None:
        self.queue = CONTEXT.Queue(maxsize=min(30_000, max(64, ROOM_BYTES // self.size)))

    def produce(self, who: int, times: int, message: bytes, batch: int) -> None:
        for _ in range(times):
            self.queue.put(message)
        self.queue.close()
        self.queue.join_thread()

    def consume(self, who: int, batch: int) -> int:
        total = 0
        while self.queue.get():
            total += 1
        return total

    def finish(self) -> None:
        for _ in range(self.consumers):
            self.queue.put(b"")

    def close(self) -> None:
        self.queue.close()
        self.queue.join_thread()

    def putter(self) -> Callable[[bytes], object]:
        return self.queue.put

    def taker(self) -> Taker:
        return lambda most: ([self.queue.get()], nothing)


class Pipe(Way):
    """One pipe for each producer and its consumer."""

    def make(self) -> None:
        self.pipes = [CONTEXT.Pipe(False) for _ in range(self.producers)]

    def produce(self, who: int, times: int, message: bytes, batch: int) -> None:
        send = self.pipes[who][1].send_bytes
        for _ in range(times):
            send(message)

    def consume(self, who: int, batch: int) -> int:
        total, receive = 0, self.pipes[who][0].recv_bytes
        while receive():
            total += 1
        return total

    def finish(self) -> None:
        for _, writer in self.pipes:
            writer.send_bytes(b"")

    def close(self) -> None:
        for ends in self.pipes:
            for end in ends:
                end.close()


class Stream(Way):
    """One socket pair for each producer and its consumer; four bytes of length before every message."""

    batches = True

    def make(self) -> None:
        self.pairs = [socket.socketpair() for _ in range(self.producers)]

    def produce(self, who: int, times: int, message: bytes, batch: int) -> None:
        send = self.pairs[who][0].sendall
        for _ in range(times // batch):
            send(b"".join([_LENGTH.pack(len(message)) + message for _ in range(batch)]))

    def consume(self, who: int, batch: int) -> int:
        stream, rest, total = self.pairs[who][1], bytearray(), 0
        while True:
            rest += stream.recv(256 * 1024)
            at, end = 0, len(rest)
            while end - at >= 4:
                (size,) = _LENGTH.unpack_from(rest, at)
                if size == 0:
                    return total
                if end - at - 4 < size:
                    break
                bytes(memoryview(rest)[at + 4 : at + 4 + size])
                total += 1
                at += 4 + size
            del rest[:at]

    def finish(self) -> None:
        for writer, _ in self.pairs:
            writer.sendall(bytes(4))

    def close(self) -> None:
        for ends in self.pairs:
            for end in ends:
                end.close()


class FasterFifo(Way):
    batches = True

    def make(self) -> None:
        import faster_fifo

        self.queue: Any = faster_fifo.Queue(ROOM_BYTES, loads=bytes, dumps=lambda data: data)

    def produce(self, who: int, times: int, message: bytes, batch: int) -> None:
        if batch == 1:
            for _ in range(times):
                self.queue.put(message, True, 60)
            return
        messages = [message] * batch
        for _ in range(times // batch):
            self.queue.put_many(messages, True, 60)

    def consume(self, who: int, batch: int) -> int:
        if batch > 1:
            return count(
                lambda: self.queue.get_many(True, 60, batch), lambda end: self.queue.put(end, True, 60)
            )
        total = 0
        while True:
            try:
                while self.queue.get(True, 60):
                    total += 1
                return total
            except Empty:  # it says so now and then, long before its time is up
                continue

    def finish(self) -> None:
        for _ in range(self.consumers):
            self.queue.put(b"", True, 60)

    def close(self) -> None:
        self.queue.close()

    def putter(self) -> Callable[[bytes], object]:
        return lambda message: self.queue.put(message, True, 60)

    def taker(self) -> Taker:
        def take(most: int) -> tuple[list[bytes], Callable[[], object]]:
            while True:
                with suppress(Empty):
                    return self.queue.get_many(True, 60, most), nothing

        return take


class Zmq(Way):
    """PUSH to PULL over ipc; every producer to every consumer."""

    def produce(self, who: int, times: int, message: bytes, batch: int) -> None:
        import zmq

        context = zmq.Context()
        push = context.socket(zmq.PUSH)
        push.setsockopt(zmq.SNDHWM, 10_000)
        for consumer in range(self.consumers):
            push.connect(f"ipc://{self.folder}/zmq{consumer}")
        for _ in range(times):
            push.send(message)
        push.close()
        context.term()

    def consume(self, who: int, batch: int) -> int:
        import zmq

        context = zmq.Context()
        pull = context.socket(zmq.PULL)
        pull.setsockopt(zmq.RCVHWM, 10_000)
        pull.bind(f"ipc://{self.folder}/zmq{who}")
        total = 0
        while pull.recv():
            total += 1
        while pull.poll(300):  # an end may come before what other producers sent
            pull.recv()
            total += 1
        pull.close()
        context.term()
        return total

    def finish(self) -> None:
        import zmq

        for consumer in range(self.consumers):
            context = zmq.Context()
            push = context.socket(zmq.PUSH)
            push.connect(f"ipc://{self.folder}/zmq{consumer}")
            push.send(b"")
            push.close()
            context.term()

    def close(self) -> None:
        for consumer in range(self.consumers):
            with suppress(FileNotFoundError):
                os.unlink(self.folder / f"zmq{consumer}")


WAYS: dict[str, type[Way]] = {
    "fairway.Ring, put and pop": Ring,
    "fairway.Ring, with CRC32C": CheckedRing,
    "fairway.Ring, put, get and ack": LeasingRing,
    "multiprocessing.Queue": Queue,
    "multiprocessing.Pipe, pairs": Pipe,
    "faster-fifo, bytes": FasterFifo,
    "pyzmq ipc, PUSH and PULL": Zmq,
    "Unix stream, framed, pairs": Stream,
}
