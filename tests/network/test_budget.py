"""The memory budget of all connections: every request is eventually granted memory, in order, and idle
connections free theirs.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.network.budget import STUCK_S, AnswerBudget, RequestBudget


class Frame:
    """An unfinished frame of `size_bytes` whose buffer doubles as data arrives."""

    def __init__(self, budget: RequestBudget, size_bytes: int) -> None:
        self.budget = budget
        self.size_bytes = size_bytes
        self.held_bytes = 0
        self.waits = False

    @property
    def wants_bytes(self) -> int:
        return min(max(self.held_bytes, 1), self.size_bytes - self.held_bytes)

    def grant_memory(self) -> None:
        self.waits = False
        self._grow()

    def come(self) -> bool:
        """Receive more data, and return whether the frame is complete."""
        if not self.waits:
            if self.budget.ask(self):
                self._grow()
            else:
                self.waits = True
        return self.held_bytes == self.size_bytes

    def end(self) -> None:
        self.budget.leave(self)
        self.budget.change(-self.held_bytes)

    def _grow(self) -> None:
        grown_bytes = self.wants_bytes
        self.held_bytes += grown_bytes
        self.budget.change(grown_bytes)


@given(
    limit_bytes=st.integers(1, 100),
    sizes=st.lists(st.integers(1, 200), min_size=1, max_size=20),
    order=st.lists(st.integers(0, 19), min_size=1, max_size=50),
)
def test_every_frame_is_completed_and_at_most_one_exceeds_the_budget(
    limit_bytes: int, sizes: list[int], order: list[int]
) -> None:
    budget = RequestBudget(limit_bytes)
    frames = [Frame(budget, size) for size in sizes]
    for _ in range(20 * len(sizes)):
        for number in [*order, *range(len(frames))]:
            if number < len(frames) and frames[number].come():
                frames.pop(number).end()
            assert budget.used_bytes <= limit_bytes + max(sizes)
        if not frames:
            break
    assert not frames
    assert budget.used_bytes == 0
    assert not budget.someone_waits


def test_an_aborted_frame_frees_its_budget_for_the_next_frame() -> None:
    budget = RequestBudget(8)
    holder, favoured, waiting = Frame(budget, 8), Frame(budget, 50), Frame(budget, 50)
    while not holder.come():
        pass
    favoured.come()
    assert budget.favoured is favoured
    waiting.come()
    assert waiting.waits
    favoured.end()
    assert not waiting.waits
    assert budget.favoured is waiting


class Client:
    """A connection with unsent responses."""

    def __init__(self, answer_bytes: int, taken_s: float = 0.0) -> None:
        self.answer_bytes = answer_bytes
        self.taken_s = taken_s
        self.woken = 0
        self.aborted = False

    def go_on(self) -> None:
        self.woken += 1

    def abort(self) -> None:
        self.aborted = True


def answer_budget(full: list[str]) -> tuple[AnswerBudget, list[Callable[[], None]]]:
    soon: list[Callable[[], None]] = []
    return AnswerBudget(100, soon.append, lambda: full.append("full")), soon


def test_clients_with_unread_responses_do_not_block_other_clients() -> None:
    budget, soon = answer_budget([])
    reader, sleeper = Client(0), Client(150)
    assert budget.may_answer(sleeper)
    budget.change(150)
    assert budget.may_answer(reader)
    assert not budget.may_answer(sleeper)
    budget.change(-60)
    for wake in soon:
        wake()
    assert (reader.woken, sleeper.woken) == (0, 1)
    assert budget.may_answer(sleeper)


def test_at_twice_the_budget_idle_clients_with_the_most_unread_bytes_are_disconnected_first() -> None:
    full: list[str] = []
    budget, _ = answer_budget(full)
    now_s = 10.0
    small, large = Client(30, now_s - 2 * STUCK_S), Client(120, now_s - 2 * STUCK_S)
    moving = Client(100, now_s - STUCK_S / 2)
    clients = [small, large, moving, Client(0)]
    budget.change(200)
    assert budget.relieve(clients, now_s) == 0
    assert full == []
    budget.change(50)
    assert full == ["full"]
    assert not budget.may_answer(Client(0))
    assert budget.relieve(clients, now_s) == 2
    assert [client.aborted for client in clients] == [True, True, False, False]
