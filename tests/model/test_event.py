"""Events as they are read back: one per span, in the order in which the queue acted."""

from __future__ import annotations

from fairway.model.event import Happened, What, encode_events, events_of


def test_what_happened_at_one_stroke_has_one_place_in_its_group() -> None:
    body = encode_events(
        [
            Happened(What.SUBMITTED, 1.0, [(7, 0, 3), (8, 0, 1)], tenants=["a", "b"]),
            Happened(What.RESERVED, 1.0, [(7, 0, 2, 1), (8, 0, 1, 1)], 5, 6),
        ]
    )
    told = [(e.number, e.place, e.what, e.submission, e.start, e.count, e.tenant) for e in events_of(4, body)]
    assert told == [
        (4, 0, "submitted", 7, 0, 3, "a"),
        (4, 0, "submitted", 8, 0, 1, "b"),
        (4, 1, "reserved", 7, 0, 2, ""),
        (4, 1, "reserved", 8, 0, 1, ""),
    ]
