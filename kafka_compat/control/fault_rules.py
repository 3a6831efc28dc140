"""Which requests fail, and what else tests do to brokers.

A request is compared with the rules in the order in which they were made; the first that fits it counts, and
is spent by one. What a rule needs is imported with the first of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_compat.api.stages import StagedContext
from kafka_compat.control.fault import Fault
from kafka_compat.control.faulty_disks import Disks
from kafka_compat.control.links import Links

if TYPE_CHECKING:
    from kafka_compat.control.held_back import HeldBack
    from kafka_compat.control.rule import Rule


class FaultRules:
    """All rules of the brokers of a process, and what else tests do to these."""

    def __init__(self) -> None:
        self.disks = Disks()
        self.links = Links()
        self.held: dict[int, HeldBack] = {}
        """What brokers do not fetch, by their ids."""
        self.rules: dict[int, Rule] = {}
        self._made = 0

    def next_number(self) -> int:
        """For a rule that is made now; none is used again."""
        self._made += 1
        return self._made

    def clear(self) -> None:
        """Have nothing fail any more."""
        self.rules.clear()
        self.disks.faults.clear()
        self.links.clear()
        for held in self.held.values():
            held.clear()

    def add(self, rule: Rule) -> None:
        """From now on."""
        self.rules[rule.number] = rule

    def fault_for(self, ctx: StagedContext, request: Any) -> Fault | None:
        """What becomes of this request; None where it is served as ever."""
        fault = self.links.fault_for(ctx)
        if fault is not None:
            return fault
        for rule in self.rules.values():
            fault = rule.fault_for(ctx, request)
            if fault is not None:
                return fault
        return None
