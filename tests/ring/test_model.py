"""Every interleaving of a small ring keeps the invariants; a model with a mistake in it does not."""

from __future__ import annotations

import pytest

from tests.ring.model import Broken, Model
from tests.ring.model_places import ModelOfPlaces

MODES = pytest.mark.parametrize("at_most_once", [False, True], ids=["at least once", "at most once"])


@MODES
def test_two_producers_two_consumers_and_one_death(at_most_once: bool) -> None:
    """The last block of the first lap and the first of the second; one message is there already."""
    states, ends = Model((1, 1), 2, at_most_once, stored=1).walk()
    print(f"{states:,} states, {ends} ends")
    assert states > 100_000 and ends > 50


def test_a_full_ring_without_a_death() -> None:
    states, _ = Model((1, 1), 2, False, stored=2, deaths=0).walk()
    assert states > 50_000


@pytest.mark.proof
@MODES
def test_a_full_ring_over_two_laps_and_one_death(at_most_once: bool) -> None:
    states, ends = Model((1, 1), 2, at_most_once, stored=2).walk()
    print(f"{states:,} states, {ends} ends")
    assert states > 1_000_000


@pytest.mark.proof
@MODES
def test_a_producer_that_goes_round_twice(at_most_once: bool) -> None:
    """One producer fills the ring more than twice, so every place is used in two laps and a third begins."""
    states, _ = Model((6,), 2, at_most_once, deaths=1).walk()
    print(f"{states:,} states")
    assert states > 100_000


@MODES
def test_no_word_names_a_place_that_was_freed(at_most_once: bool) -> None:
    """With who frees the places of the dead, and who looks for them now and then though nobody died."""
    states, ends = ModelOfPlaces((1,), 2, at_most_once, stored=1).walk()
    print(f"{states:,} states, {ends} ends")
    assert states > 30_000 and ends > 30


@pytest.mark.proof
@MODES
def test_no_word_names_a_place_that_was_freed_with_two_producers(at_most_once: bool) -> None:
    states, ends = ModelOfPlaces((1, 1), 2, at_most_once, stored=1).walk()
    print(f"{states:,} states, {ends} ends")
    assert states > 500_000


def test_a_place_that_is_freed_too_early_is_found() -> None:
    """Of one who claimed behind the walk and died then."""
    with pytest.raises(Broken, match="freed"):
        ModelOfPlaces((1,), 2, False, 1, mistake="places are freed of those who died during the walk").walk()


@pytest.mark.parametrize(
    ("mistake", "puts", "stored"),
    [
        ("a slow owner counts as dead", (1, 1), 0),
        ("nobody says that a block is to be delivered again", (1,), 1),
        ("space is taken before it is free", (2,), 2),
        ("nobody moves a hint for the dead", (1,), 1),
    ],
)
def test_a_mistake_is_found(mistake: str, puts: tuple[int, ...], stored: int) -> None:
    """A model that cannot fail proves nothing; each of these was in some design of such a ring."""
    Model(puts, 2, False, stored).walk()
    with pytest.raises(Broken):
        Model(puts, 2, False, stored, mistake=mistake).walk()
