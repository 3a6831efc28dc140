"""Control API route that deletes all data between tests."""

import asyncio
from collections.abc import Sequence

from kafka_compat.broker import Broker
from kafka_compat.control.events import EventLog
from kafka_compat.control.hooks import ControlHooks
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.http.routes import UNAVAILABLE, Answer, BadCall, Call, Route

_TIMEOUT_MS = 30_000


class Reset:
    """Route that deletes all topics, including the internal topics with groups and transactions, removes all
    faults and recordings, and returns to real time.
    """

    def __init__(self, brokers: Sequence[Broker], hooks: ControlHooks, events: EventLog) -> None:
        self._brokers = brokers
        self._hooks = hooks
        self._events = events

    def routes(self, prefix: str) -> list[Route]:
        return [
            Route(
                "POST",
                prefix + "/reset",
                self._reset,
                "delete topics, groups, transactions, faults and recordings; return to the system time",
            )
        ]

    async def _reset(self, call: Call) -> Answer:
        self._hooks.faults.clear()
        self._hooks.recording.reset()
        found = {
            (name, known.topic_id)
            for broker in self._brokers
            for name, known in broker.services.metadata.topics.items()
        }
        topics = sorted({name for name, _ in found})
        await asyncio.gather(*map(self._delete, topics))
        ids = {topic_id for _, topic_id in found}

        def are_gone() -> bool:
            # Compare topic IDs, because a client that a test left open may have recreated a topic with the
            # same name.
            return not any(
                known.topic_id in ids
                for broker in self._brokers
                for known in broker.services.metadata.topics.values()
            )

        # Wait for all brokers, because the controller updates them one after the other.
        if not await self._hooks.pulse.until(are_gone, _TIMEOUT_MS):
            raise BadCall(f"some brokers have not deleted {', '.join(topics)} yet", UNAVAILABLE)
        self._hooks.travel.reset()
        self._events.events.clear()
        return {"topics": topics}

    async def _delete(self, name: str) -> None:
        while True:
            controller = await self._controller()
            try:
                await controller.services.topics.delete(name, _TIMEOUT_MS)
            except KafkaError as error:
                if error.code == ErrorCode.NOT_CONTROLLER:
                    # Retry with the new controller, because this broker's session has just ended.
                    continue
                if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    problem = f"{name} cannot be deleted: {error.code.name} {error}"
                    raise BadCall(problem, UNAVAILABLE) from None
            return

    async def _controller(self) -> Broker:
        def active() -> Broker | None:
            return next((each for each in self._brokers if each.services.controller.is_active), None)

        await self._hooks.pulse.until(lambda: active() is not None, _TIMEOUT_MS)
        found = active()
        if found is None:
            raise BadCall("the controller is not in this process", UNAVAILABLE)
        return found
