"""Redriving: dead letters become messages again.

Guards: a letter is removed only when its message is accepted, so whoever stops in between leaves both: at least once.
"""

from __future__ import annotations

from fairway.bucket.rows import DeadLetter, Message
from fairway.bucket.statements import DropDead, Machine, insist
from fairway.bucket.writing import Slot, Told, Writer, put


def renewed(letters: list[DeadLetter], uids: list[bytes], now: float) -> list[Message]:
    """Dead letters as new messages, under new ids: the old ones never come back."""
    return [
        Message(uid, letter.body, letter.headers, now, now) for uid, letter in zip(uids, letters, strict=True)
    ]


def redrive(writer: Writer, slot: Slot, letters: list[DeadLetter], messages: list[Message]) -> Machine[Told]:
    """Put the messages that these letters become, then remove the letters."""
    told = yield from put(writer, slot, messages)
    if told is Told.ACCEPTED:
        yield from insist(DropDead(writer.generation, [letter.uid for letter in letters]))
    return told
