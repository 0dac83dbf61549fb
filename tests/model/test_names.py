"""Object names are implied by the segments of a submission."""

from hypothesis import given
from hypothesis import strategies as st

from fairway.model.names import object_name, result_name
from fairway.model.submission import Described


@given(st.lists(st.integers(0, 4), max_size=6))
def test_chunk_i_of_a_segment_is_prefix_i_whatever_the_segments(counts: list[int]) -> None:
    described = Described(
        "t", sum(counts), segments=tuple((f"p{n}", count) for n, count in enumerate(counts))
    )
    wanted = [f"p{n}/{i}" for n, count in enumerate(counts) for i in range(count)]
    assert [object_name(described, i) for i in range(len(wanted))] == wanted
    assert object_name(described, len(wanted)) is None


def test_many_descriptions_do_not_mix_up_their_names() -> None:
    for n in range(300):
        described = Described("t", 4, segments=((f"a{n}", 1), (f"b{n}", 3)))
        assert [object_name(described, i) for i in range(4)] == [f"a{n}/0", f"b{n}/0", f"b{n}/1", f"b{n}/2"]


def test_two_attempts_never_share_a_result_name() -> None:
    described = Described("t", 1, segments=(("p", 1),))
    names = {
        result_name(described, 0, epoch, count, writer)
        for epoch in (1, 2)
        for count in (1, 2)
        for writer in (0, 7)
    }
    assert len(names) == 8
    assert result_name(described, 0, 255, 16, 1) == "p/0.out.ff.10.1"
