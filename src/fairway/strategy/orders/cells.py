"""What a limited order is made of: cells of runs, in flows that share a turn, parked at gates that are values.

Guards: an entry in a heap is valid only while its object says so, so objects move without being searched for.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from fairway.strategy.order import TurnTable
from fairway.strategy.tiers import Value

GONE: Final = 1 << 80  # the id of a cell without runs: no run has it


class Gate:
    """One value of a limited key, and the cells that are parked there, by key."""

    __slots__ = ("counts", "entry", "heap", "key", "parked", "users", "value")

    def __init__(self, key: str, value: Value, counts: dict[Value, int]) -> None:
        self.key = key
        self.value = value
        self.counts = counts
        self.heap: list[tuple[int, Cell]] = []
        self.entry: int | None = None  # its valid key on top
        self.parked = 0
        self.users = 0  # cells with this value

    def __lt__(self, other: object) -> bool:
        return False  # equal keys: either may be first


class Flow:
    """Cells that share a turn: a tenant, a tenant at a priority, or everything. At home are those not parked."""

    __slots__ = ("above", "cells", "entry", "home", "name", "tenant", "turns")

    def __init__(self, name: Hashable, tenant: str, turns: TurnTable | None, above: int) -> None:
        self.name = name
        self.tenant = tenant
        self.turns = turns
        self.above = above
        self.home: list[tuple[int, Cell]] = []  # by lowest id
        self.entry: int | None = None  # its valid key on top
        self.cells: list[Cell] = []

    def __lt__(self, other: object) -> bool:
        return False


class Cell:
    """Runs of one flow that agree on every limited value."""

    __slots__ = ("entry", "flow", "gates", "id", "ids", "name", "parked", "place")

    def __init__(self, name: Hashable, flow: Flow, gates: tuple[Gate, ...], id: int) -> None:
        self.name = name
        self.flow = flow
        self.gates = gates
        self.ids: list[int] = []
        self.id = id  # the lowest, as far as is known
        self.parked: Gate | None = None
        self.entry = 0  # its valid key in the gate where it is parked
        self.place = len(flow.cells)

    def __lt__(self, other: object) -> bool:
        return False
