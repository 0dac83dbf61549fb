"""The verbs that steer: cancel, redrive, pause, weights, configuration."""

from __future__ import annotations

from typing import Any

import msgspec

from fairway.engine.commands import Cancel, Configure, Pause, Redrive, SetWeight, ShowConfig
from fairway.errors import BadArgument
from fairway.face import checks
from fairway.face.steps import Ask, Steps
from fairway.fair.weights import thousandths
from fairway.model.config import QueueConfig, changed
from fairway.model.submission import Submission
from fairway.strategy.terms import StrategyLike


class SteerVerbs:
    """The operator's verbs."""

    def cancel(self, submission: int | Submission) -> Steps[Submission]:
        """End a submission now; what is leased of it is lost to its workers. AlreadyEnded if it has ended."""
        return (yield Ask(Cancel(checks.submission_id(submission))))

    def redrive(self, submission: int | Submission) -> Steps[Submission]:
        """Open the dead and skipped chunks of a submission again, in a new life."""
        return (yield Ask(Redrive(checks.submission_id(submission))))

    def pause(self, *, tenant: str | None = None, submission: int | Submission | None = None) -> Steps[None]:
        """Hand out nothing more of a tenant, a submission, or (with neither) the queue; leases out go on."""
        yield Ask(_flag(True, tenant, submission))

    def resume(self, *, tenant: str | None = None, submission: int | Submission | None = None) -> Steps[None]:
        """Take a pause of a tenant, a submission, or (with neither) the queue back."""
        yield Ask(_flag(False, tenant, submission))

    def set_weight(self, tenant: str, weight: float) -> Steps[None]:
        """Set a tenant's share: 0.01 to 100 in steps of 0.001; it acts at once on what waits already."""
        yield Ask(SetWeight(checks.tenant(tenant), thousandths(weight)))

    def configure(
        self,
        *,
        attempts_max: int | None = None,
        lease_seconds: float | None = None,
        retention_seconds: float | None = None,
        event_seconds: float | None = None,
        retry_delay_seconds: float | None = None,
        retry_delay_seconds_max: float | None = None,
        consumer_silent_seconds: float | None = None,
        client_silent_seconds: float | None = None,
        strategy: StrategyLike | None = None,
        strategy_locked: bool | None = None,
    ) -> Steps[QueueConfig]:
        """Change the settings that are given, and give the whole configuration as it is then."""
        changes: dict[str, Any] = {n: v for n, v in locals().items() if n != "self" and v is not None}
        if strategy is not None:
            changes["strategy"] = checks.strategy(strategy)
        plain = msgspec.structs.asdict(changed(QueueConfig(), changes))
        # Who changes nothing only looks, and needs no more right than that.
        command = Configure({name: plain[name] for name in changes}) if changes else ShowConfig()
        return msgspec.convert((yield Ask(command)), QueueConfig)


def _flag(on: bool, tenant: object, submission: object) -> Pause:
    if tenant is not None and submission is not None:
        raise BadArgument("give tenant or submission, not both", argument="submission")
    if submission is not None:
        return Pause(on, None, checks.submission_id(submission))
    return Pause(on, None if tenant is None else checks.tenant(tenant))
