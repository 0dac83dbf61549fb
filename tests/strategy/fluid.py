"""The fluid server: what every tenant would have if a dispatch could be divided, in exact fractions."""

from __future__ import annotations

from fractions import Fraction


class Fluid:
    """One dispatch is one unit of service, shared by weight among those that have work left in the fluid."""

    def __init__(self, weights: dict[str, int] | None = None) -> None:
        self.weights = weights or {}
        self.left: dict[str, Fraction] = {}
        self.got: dict[str, Fraction] = {}

    def submit(self, tenant: str, n: int) -> None:
        self.left[tenant] = self.left.get(tenant, Fraction(0)) + n
        self.got.setdefault(tenant, Fraction(0))

    def serve(self) -> None:
        unit = Fraction(1)
        while unit and self.left:
            total = sum(self.weights.get(t, 1000) for t in self.left)
            part = {t: Fraction(self.weights.get(t, 1000), total) for t in self.left}
            spent = min(unit, min(left / part[t] for t, left in self.left.items()))
            for tenant in list(self.left):
                served = spent * part[tenant]
                self.got[tenant] += served
                self.left[tenant] -= served
                if not self.left[tenant]:
                    del self.left[tenant]
            unit -= spent
