"""The order in which connections are served, tested with a manual clock and event loop."""

from __future__ import annotations

from collections.abc import Callable

from kafka_compat.network.turns import FIRST_IN_A_ROW, SLICE_S, TURN_S, Turns


class Loop:
    def __init__(self) -> None:
        self.now_s = 1.0
        self.ready: list[Callable[[], None]] = []
        self.turns = Turns(lambda: self.now_s, self.ready.append)
        self.served: list[str] = []

    def iterate(self) -> None:
        ready, self.ready[:] = list(self.ready), []
        for callback in ready:
            callback()


class Client:
    """A client with `requests` requests that take `request_s` each."""

    closed = False
    in_line = False
    began_slice = -1

    def __init__(self, loop: Loop, name: str, requests: int = 1, request_s: float = 0.001) -> None:
        self.loop = loop
        self.name = name
        self.requests = requests
        self.request_s = request_s

    def take_turn(self, now_s: float, until_s: float) -> bool:
        self.loop.served.append(self.name)
        while True:
            self.requests -= 1
            self.loop.now_s += self.request_s
            if self.requests <= 0 or self.loop.now_s >= until_s:
                return self.requests > 0


def test_requests_within_the_time_slice_are_served_immediately_if_no_connection_is_waiting() -> None:
    loop = Loop()
    turns = loop.turns
    first, second, third = (Client(loop, name) for name in ("first", "second", "third"))
    assert turns.begin(first, loop.now_s)
    loop.now_s += SLICE_S
    assert not turns.begin(second, loop.now_s), "the time slice of this iteration is used up"
    loop.iterate()
    assert turns.begin(second, loop.now_s), "a new iteration with an empty queue"
    loop.iterate()
    assert not loop.ready
    assert turns.begin(second, loop.now_s), "it is readable again, so this is a new iteration"
    assert not loop.ready, "no callback is needed if only one connection is active"
    assert turns.begin(third, loop.now_s), "a second slice in this iteration"
    assert not turns.begin(first, loop.now_s), "both time slices of this iteration are used up"


def test_occasional_clients_are_served_before_a_flooding_client_without_starving_it() -> None:
    loop = Loop()
    floods = [Client(loop, f"flood {number}", requests=1000) for number in range(3)]
    for flood in floods:
        loop.turns.line_up(flood, first=False)
    loop.iterate()
    assert loop.served
    assert not loop.turns.begin(Client(loop, "another"), loop.now_s), "other clients are queued"
    loop.served.clear()
    for number in range(2 * FIRST_IN_A_ROW):
        loop.turns.line_up(Client(loop, f"bystander {number}", request_s=0.0001), first=True)
    for _ in range(4):
        loop.iterate()
    served_first = [name for name in loop.served if name.startswith("bystander")]
    assert served_first == [f"bystander {number}" for number in range(2 * FIRST_IN_A_ROW)]
    assert loop.served.index("bystander 7") <= 2 * FIRST_IN_A_ROW + 2
    assert {"flood 0", "flood 1", "flood 2"} <= set(loop.served)


def test_time_slices_get_shorter_when_many_clients_wait() -> None:
    loop = Loop()
    for number in range(100):
        loop.turns.line_up(Client(loop, str(number), requests=50, request_s=0.0001), first=False)
    while len(set(loop.served)) < 100:
        loop.iterate()
    assert len(set(loop.served[:100])) == 100, "every client had one turn before any had two"
    assert loop.now_s - 1.0 < 100 * TURN_S / 5


def test_the_number_of_requests_served_per_loop_iteration_is_bounded() -> None:
    loop = Loop()
    for number in range(100):
        loop.turns.line_up(Client(loop, str(number), request_s=0.003), first=True)
    loop.iterate()
    assert len(loop.served) == 4
    gone = Client(loop, "gone")
    gone.closed = True
    loop.turns.line_up(gone, first=True)
    for _ in range(30):
        loop.iterate()
    assert len(loop.served) == 100
