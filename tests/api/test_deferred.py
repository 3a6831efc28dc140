"""Deferred responses: each is completed at most once."""

from __future__ import annotations

import gc
import weakref

import pytest

from kafka_compat.deferred import Deferred


class Work:
    """Work that holds its deferred response, like a delayed Fetch."""

    def __init__(self) -> None:
        self.deferred = Deferred(self)
        self.is_canceled = False

    def cancel(self) -> None:
        self.is_canceled = True


def told(deferred: Deferred) -> list[object]:
    """Return a list that receives the response, or "hung up", once `deferred` is done."""
    seen: list[object] = []
    deferred.when_done(lambda done: seen.append("hung up" if done.is_hung_up else done.response))
    return seen


def test_a_deferred_response_is_completed_only_once() -> None:
    deferred = Deferred()
    seen = told(deferred)
    deferred.complete("response")
    assert seen == ["response"] == told(deferred)
    with pytest.raises(RuntimeError, match="a second response"):
        deferred.complete("another")
    deferred.hang_up()
    assert seen == ["response"]


def test_a_canceled_response_is_never_completed() -> None:
    work = Work()
    seen = told(work.deferred)
    work.deferred.cancel()
    assert work.is_canceled
    work.deferred.complete("late")
    assert seen == []


@pytest.mark.parametrize("ends_serially", [True, False])
def test_later_requests_wait_only_while_the_current_step_is_serial(ends_serially: bool) -> None:
    steps = Deferred(is_serial=True)
    released: list[bool] = []
    steps.when_released(lambda: released.append(True))
    inner = Deferred(is_serial=ends_serially)
    seen = told(steps)
    steps.follow(inner)
    assert bool(released) is not ends_serially
    inner.complete("response")
    assert (seen, released) == (["response"], [True])


def test_cancellation_and_hangup_propagate_between_chained_responses() -> None:
    work, outer = Work(), Deferred()
    outer.follow(work.deferred)
    outer.cancel()
    assert work.is_canceled
    left, follower = Deferred(), Deferred()
    follower.follow(left)
    left.hang_up()
    assert told(follower) == ["hung up"]


@pytest.mark.parametrize("is_canceled", [True, False])
def test_a_completed_response_does_not_create_a_reference_cycle(is_canceled: bool) -> None:
    gc.disable()
    try:
        work = Work()
        freed = weakref.ref(work)
        deferred = work.deferred
        if is_canceled:
            deferred.cancel()
        else:
            deferred.complete("response")
        del work
        assert freed() is None
    finally:
        gc.enable()
