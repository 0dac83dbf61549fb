"""Everything the engine knows: one value that commands read and change.

Guards: what is here is what the stored groups and the filling one say, and nothing else.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable

import msgspec

from fairway.engine.aside import Aside
from fairway.engine.clients import Client
from fairway.engine.commands import Explain, Reserve
from fairway.engine.consumer import Consumer
from fairway.engine.dirty import Dirty
from fairway.engine.draft import Draft
from fairway.engine.filling import Filling
from fairway.engine.holds import Hold
from fairway.engine.recent import Recent
from fairway.engine.reservers import Reservers
from fairway.engine.roll import Roll
from fairway.engine.run import Run
from fairway.engine.tenant import Tenant
from fairway.fair.levels import Forecast, Level
from fairway.fair.turns import Tables
from fairway.fair.window import Window
from fairway.limits import FETCHED_ROWS_MAX, GC_ROWS, PLAN_STEPS, WINDOW_ROWS
from fairway.model.config import QueueConfig
from fairway.model.stored import KeyRow
from fairway.strategy.plan import Plan, Plans


class Start(msgspec.Struct, frozen=True):
    """What a start brings in from outside."""

    queue: str
    epoch_bits: int  # 32 random bits: a restored backup must not repeat an attempt
    seed: int
    now: float
    forget_leases: bool = False
    above_id: int = 0  # an id in a group that failed is never given again
    window_rows: int = WINDOW_ROWS
    fetched_rows: int = FETCHED_ROWS_MAX
    gc_rows: int = GC_ROWS
    plan_steps: int = PLAN_STEPS
    journal_groups: int = 0  # for how many groups an object may differ from its stored form; 0: as shipped


class MetaBody(msgspec.Struct, array_like=True):
    """What is stored anew with every group."""

    v: int
    ack: Level
    era: int
    last_id: int
    next_count: int
    next_client: int
    top: int
    secret: bytes
    seed: int
    now: float
    live: int = -1  # active submissions; -1: a store from before they were counted
    done: int = 0  # chunks of them that are done
    dead: int = 0
    finished: int = 0  # places that are over and not given up, in a store that deletes by range


def who_reserves(command: Reserve, client: int) -> Hashable:
    """The consumer that a reserve comes from."""
    return command.consumer or (client, command.worker)


class Waiter:
    """A reserve that waits for work; it waits no longer when it has no drafts."""

    __slots__ = ("client", "command", "drafts", "number", "plan", "strategy", "ticket", "until", "who")

    def __init__(self, command: Reserve, draft: Draft, client: int, number: int, until: float) -> None:
        self.command = command
        self.drafts = [draft]  # several if the same numbered call came again
        self.client = client
        self.number = number
        self.until = until
        self.who = who_reserves(command, client)
        self.strategy = ""
        self.plan: Plan[Run] | None = None  # pinned while it waits
        self.ticket = 0


class Watcher:
    """A call that waits for the end of a submission; it waits no longer when it has no drafts."""

    __slots__ = ("drafts", "id", "ticket")

    def __init__(self, id: int, draft: Draft) -> None:
        self.id = id
        self.drafts = [draft]
        self.ticket = 0


class Asker:
    """A call that waits to have a strategy explained: for its plan, or for what the store is asked."""

    __slots__ = ("command", "draft", "plan", "strategy")

    def __init__(self, command: Explain, draft: Draft, plan: Plan[Run], strategy: str) -> None:
        self.command = command
        self.draft = draft
        self.plan = plan  # pinned while it waits
        self.strategy = strategy


class State:
    """The queue in memory."""

    def __init__(
        self, queue: str, queue_number: int, epoch: int, body: MetaBody, tables: Tables, plans: Plans[Run]
    ) -> None:
        self.queue = queue
        self.queue_number = queue_number
        self.epoch = epoch
        self.now = body.now
        self.secret = body.secret
        self.seed = body.seed
        self.era = body.era
        self.last_id = body.last_id
        self.next_count = body.next_count
        self.next_client = body.next_client
        self.top = body.top  # the highest pass ever given
        self.config = QueueConfig()
        self.paused = False
        self.runs: dict[int, Run] = {}
        self.roll = Roll(self.runs)
        self.tenants: dict[str, Tenant] = {}
        self.tables = tables
        self.plans = plans
        self.forecast = Forecast(tables.weight)
        self.live = body.live
        self.done = body.done
        self.dead = body.dead
        self.finished = body.finished
        self.counted: set[str] = set()  # tenants whose counts changed since the last group
        self.window = Window(body.ack)
        self.aside = Aside()
        self.holds: dict[tuple[int, int], Hold] = {}
        self.clients: dict[int, Client] = {}
        self.consumers: dict[str, Consumer] = {}
        self.reservers = Reservers()
        self.leased = 0
        # heaps with stale entries; each entry is checked when it is due
        self.expiries: list[tuple[float, int, int]] = []  # (deadline, count, part)
        self.dues: list[tuple[float, int, int]] = []  # (due, submission, index or DUE_*)
        self.timeouts: list[tuple[float, int, Waiter | Watcher]] = []  # waits that run out
        self.timeout_ticket = 0
        self.silence_check = math.inf  # when clients are next looked over
        self.idle_check = math.inf  # when plans are
        # those who wait
        self.waiters: dict[str, OrderedDict[int, Waiter]] = {}  # by strategy, first come first served
        self.watchers: dict[int, dict[int, Watcher]] = {}  # by submission
        self.askers: list[Asker] = []
        self.waiting = 0
        self.woken = False  # something became eligible since waiters were last served
        # what is on its way to the store
        self.filling = Filling()
        self.number = 0  # of the filling group
        self.stored_number = 0  # of the last stored one
        self.stored_id = body.last_id  # the highest id in it or before it
        self.closed_given = self.given  # as the last closed group has it
        self.dirty = Dirty()
        self.recent_ends: Recent[int, Run] = Recent()
        self.recent_keys: Recent[tuple[str, str], KeyRow] = Recent()
        self.recent_lives: Recent[int, None] = Recent()  # ended runs that are active again
        # counters since the start
        self.groups = self.calls = self.syncs = 0
        self.handed = self.completed = self.died = 0  # chunks

    @property
    def given(self) -> tuple[int, int, int]:
        """The last numbers of each kind that were given, whatever became of what has them."""
        return self.last_id, self.next_count, self.next_client

    def tenant(self, name: str) -> Tenant:
        """The tenant, made if it is new."""
        found = self.tenants.get(name)
        if found is None:
            found = self.tenants[name] = Tenant(name)
        return found


DUE_START = -1  # a submission's not_before
DUE_DEADLINE = -2  # a submission's deadline
