"""One reign of this broker as controller: changes of nodes and requests go into the machine
(coordination/controller.py), what comes out is written and sent.

Rules
1. One thing at a time: a job reads what an event needs, the machine handles it, its effects are carried out,
   and what was written is told to the machine, before the next job.
2. A reign is one session with the store. It ends with Deposed or SessionExpired; whoever waits for an answer
   then gets NOT_CONTROLLER.
3. A read or write whose answer was lost is done again: reads change nothing, writes carry versions or the
   whole value.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar
from uuid import UUID

from coordination import controller_model as model
from coordination import znodes
from coordination.controller import Controller
from coordination.metadata_store import ConnectionLost, MetadataStore, Watch
from coordination.metadata_store import Event as StoreEvent
from coordination.model import BrokerInfo, TopicState
from kafka_compat.cluster import controller_wire as wire
from kafka_compat.cluster.broker_channels import BrokerChannels, ControllerRequest
from kafka_compat.cluster.controller_nodes import RETRY_S, ControllerNodes, Reign
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.topic_nodes import new_topic_id

log = logging.getLogger(__name__)

UNCLEAN = "unclean.leader.election.enable"
FIRST_REBALANCE_S = 5.0

T = TypeVar("T")
Job = Callable[[], Awaitable[model.Event | None]]


@dataclass(frozen=True)
class ReignSettings:
    """What a controller obeys, beside what its machine does."""

    machine: model.ControllerSettings
    listener: str
    """The listener that brokers use among themselves."""
    unclean_default: bool
    request_timeout_ms: int
    rebalance_interval_s: int | None
    """leader.imbalance.check.interval.seconds; None without auto.leader.rebalance.enable."""


class ControllerReign:
    """See the rules above."""

    def __init__(self, broker_id: int, reign: Reign, store: MetadataStore, settings: ReignSettings) -> None:
        self._broker_id = broker_id
        self._reign = reign
        self._settings = settings
        self._unclean_default = settings.unclean_default
        self._nodes = ControllerNodes(store)
        self._machine = Controller(broker_id, settings.machine)
        self._channels = BrokerChannels(
            f"controller-{broker_id}", settings.listener, settings.request_timeout_ms
        )
        self._jobs: asyncio.Queue[Job] = asyncio.Queue()
        self._watched: set[str] = set()
        self._request_ids = itertools.count()
        self._waiting: dict[Hashable, asyncio.Future[model.ReplyValue]] = {}
        self._unclean_topics: dict[str, bool] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._over = False

    @property
    def epochs(self) -> Reign:
        """Which reign this is."""
        return self._reign

    async def run(self) -> None:
        """Reign until Deposed or SessionExpired is raised, or the task is cancelled."""
        try:
            await self._handle(await self._persist(self._elected))
            if self._settings.rebalance_interval_s is not None:
                self._schedule_rebalance(FIRST_REBALANCE_S)
            while True:
                job = await self._jobs.get()
                event = await self._persist(job)
                if event is not None:
                    await self._handle(event)
        finally:
            self._over = True
            if self._timer is not None:
                self._timer.cancel()
            for effect in self._machine.handle(model.Resigned()):
                if isinstance(effect, model.Reply):
                    self._answer(effect)
            for waiting in self._waiting.values():
                # Asked, and not yet handled by the machine.
                waiting.cancel()
            await self._channels.close()

    async def ask(self, make: Callable[[Hashable], model.Event]) -> model.ReplyValue | None:
        """The machine's reply to a request that `make` builds with its id; None when the reign is over.

        `make` is called when it is the request's turn: the controller has read all topics by then.
        """
        if self._over:
            return None
        request_id = next(self._request_ids)
        waiting: asyncio.Future[model.ReplyValue] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = waiting

        async def job() -> model.Event:
            return make(request_id)

        self._jobs.put_nowait(job)
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.cancelled() and self._over:
                return None
            raise
        finally:
            self._waiting.pop(request_id, None)

    async def told(self) -> None:
        """Wait until all brokers have answered what was sent to them so far."""
        await self._channels.drained()

    def topic_named(self, topic_id: UUID) -> str | None:
        """The topic with an id, as far as the controller knows."""
        return self._machine.topic_named(topic_id)

    def topic_settings_changed(self, topic: str) -> None:
        """A topic's settings changed."""
        self._jobs.put_nowait(partial(self._unclean_changed, topic))

    def unclean_default_changed(self, allowed: bool) -> None:
        """unclean.leader.election.enable of the brokers is another now."""
        if allowed != self._unclean_default:
            self._unclean_default = allowed
            self._post(model.UncleanConfigChanged(allowed, dict(self._unclean_topics)))

    # --- events

    def _post(self, event: model.Event) -> None:
        async def job() -> model.Event:
            return event

        if not self._over:
            self._jobs.put_nowait(job)

    async def _persist(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await call()
            except ConnectionLost:
                await asyncio.sleep(RETRY_S)

    def _watch(self, path: str, job: Job) -> Watch | None:
        """A watch that does `job`; None where the path is watched already."""
        if path in self._watched:
            return None
        self._watched.add(path)

        def changed(event: StoreEvent) -> None:
            self._watched.discard(path)
            if not self._over:
                self._jobs.put_nowait(job)

        return changed

    async def _elected(self) -> model.Event:
        nodes, version = self._nodes, self._reign.epoch_znode_version
        # A watch of an attempt that was cut short may be lost with it; a second one only reads once more.
        self._watched.clear()
        await nodes.enable_features(version)
        # Whoever is elected reads every state anyway.
        await nodes.take_isr_changes(self._watch(znodes.ISR_CHANGES, self._isrs_changed), version)
        await nodes.take_log_dir_events(self._watch(znodes.LOG_DIR_EVENTS, self._log_dirs_failed), version)
        brokers = await self._read_brokers()
        names = await nodes.topic_names(self._watch(znodes.TOPICS, self._topics_changed))
        topics = await self._read_topics(names)
        await self._read_unclean(names)
        return model.Elected(
            controller_epoch=self._reign.controller_epoch,
            epoch_znode_version=version,
            brokers=brokers,
            topics=topics,
            states=await nodes.states(topics),
            deletions=await nodes.deletions(self._watch(znodes.DELETE_TOPICS, self._deletions_requested)),
            unclean_default=self._unclean_default,
            unclean_topics=dict(self._unclean_topics),
            preferred_elections=await nodes.legacy_elections(
                self._watch(znodes.PREFERRED_REPLICA_ELECTION, self._election_found)
            ),
            reassignments=await nodes.legacy_reassignments(
                self._watch(znodes.REASSIGN_PARTITIONS, self._reassignment_found)
            ),
        )

    async def _read_brokers(self) -> tuple[BrokerInfo, ...]:
        brokers = await self._nodes.brokers(
            self._watch(znodes.BROKER_IDS, self._brokers_changed),
            lambda broker_id: self._watch(znodes.broker_path(broker_id), self._brokers_changed),
        )
        # Of a broker that was gone when it was read, no watch was set.
        alive = {znodes.broker_path(broker.broker_id) for broker in brokers}
        prefix = f"{znodes.BROKER_IDS}/"
        self._watched = {path for path in self._watched if not path.startswith(prefix) or path in alive}
        self._channels.set_brokers(brokers)
        return brokers

    async def _read_topics(self, names: list[str]) -> tuple[TopicState, ...]:
        topics = await self._nodes.topics(
            names, lambda name: self._watch(znodes.topic_path(name), partial(self._partitions_changed, name))
        )
        found = {topic.name for topic in topics}
        for name in names:
            if name not in found:
                self._watched.discard(znodes.topic_path(name))
        complete = []
        for topic in topics:
            if topic.topic_id is None:
                # Made by Kafka before 2.8, or by its old tool: the controller gives it its id (KIP-516).
                topic = replace(topic, topic_id=new_topic_id())
                await self._nodes.write_topic(topic, self._reign.epoch_znode_version)
            complete.append(topic)
        return tuple(complete)

    async def _read_unclean(self, names: list[str]) -> bool:
        """Learn what these topics say of unclean elections; whether any of it is new."""
        before = dict(self._unclean_topics)
        settings = await self._nodes.topic_settings(names, UNCLEAN)
        for name in names:
            if name in settings:
                self._unclean_topics[name] = settings[name] == "true"
            else:
                self._unclean_topics.pop(name, None)
        return before != self._unclean_topics

    async def _brokers_changed(self) -> model.Event:
        return model.BrokersChanged(await self._read_brokers())

    async def _topics_changed(self) -> model.Event:
        names = await self._nodes.topic_names(self._watch(znodes.TOPICS, self._topics_changed))
        new = [name for name in names if name not in self._machine.topics]
        if await self._read_unclean(new):
            await self._handle(model.UncleanConfigChanged(self._unclean_default, dict(self._unclean_topics)))
        return model.TopicsChanged(frozenset(names), await self._read_topics(new))

    async def _partitions_changed(self, name: str) -> model.Event | None:
        found = await self._read_topics([name])
        return model.PartitionsChanged(found[0]) if found else None

    async def _deletions_requested(self) -> model.Event:
        watch = self._watch(znodes.DELETE_TOPICS, self._deletions_requested)
        topics = await self._nodes.deletions(watch)
        if not self._machine.topics.issuperset(topics):
            # Made just before: without this the request would be taken for one about a topic that is gone.
            await self._handle(await self._topics_changed())
        return model.DeletionsRequested(topics)

    async def _election_found(self) -> model.Event | None:
        watch = self._watch(znodes.PREFERRED_REPLICA_ELECTION, self._election_found)
        partitions = await self._nodes.legacy_elections(watch)
        return model.PreferredElectionFound(partitions) if partitions else None

    async def _reassignment_found(self) -> model.Event | None:
        watch = self._watch(znodes.REASSIGN_PARTITIONS, self._reassignment_found)
        targets = await self._nodes.legacy_reassignments(watch)
        return model.ReassignmentFound(targets) if targets else None

    async def _log_dirs_failed(self) -> model.Event | None:
        watch = self._watch(znodes.LOG_DIR_EVENTS, self._log_dirs_failed)
        brokers = await self._nodes.take_log_dir_events(watch, self._reign.epoch_znode_version)
        return model.LogDirsFailed(brokers) if brokers else None

    async def _isrs_changed(self) -> model.Event | None:
        watch = self._watch(znodes.ISR_CHANGES, self._isrs_changed)
        states = await self._nodes.take_isr_changes(watch, self._reign.epoch_znode_version)
        return model.IsrChangesFound(states) if states else None

    async def _unclean_changed(self, topic: str) -> model.Event | None:
        if not await self._read_unclean([topic]):
            return None
        return model.UncleanConfigChanged(self._unclean_default, dict(self._unclean_topics))

    def _schedule_rebalance(self, delay_s: float) -> None:
        def tick() -> None:
            self._post(model.RebalanceTick())
            assert self._settings.rebalance_interval_s is not None
            self._schedule_rebalance(self._settings.rebalance_interval_s)

        self._timer = asyncio.get_running_loop().call_later(delay_s, tick)

    # --- effects

    async def _handle(self, event: model.Event) -> None:
        events = [event]
        while events:
            for effect in self._machine.handle(events.pop(0)):
                outcome = await self._apply(effect)
                if outcome is not None:
                    events.append(outcome)

    async def _apply(self, effect: model.Effect) -> model.Event | None:
        """Carry an effect out; the event that its outcome is."""
        nodes = self._nodes
        match effect:
            case model.WriteStates():
                return await self._persist(partial(nodes.write_states, effect))
            case model.WriteTopic(topic, version):
                await self._persist(partial(nodes.write_topic, topic, version))
            case model.DeleteTopicNodes(name, version):
                await self._persist(partial(nodes.delete_topic, name, version))
            case model.ClearDeletions(topics, version):
                await self._persist(partial(nodes.clear_deletions, topics, version))
            case model.ClearPreferredElection(version):
                await self._persist(partial(nodes.clear_legacy_election, version))
            case model.WriteReassignments(targets, version):
                await self._persist(partial(nodes.write_legacy_reassignments, targets, version))
            case model.SendLeaderAndIsr():
                self._send_leader_and_isr(effect)
            case model.SendUpdateMetadata():
                self._send_update_metadata(effect)
            case model.SendStopReplica():
                self._send_stop_replica(effect)
            case model.Reply():
                self._answer(effect)
            case model.Note(level, text):
                log.log(logging.WARNING if level is model.Level.WARNING else logging.INFO, "%s", text)
        return None

    def _answer(self, reply: model.Reply) -> None:
        waiting = self._waiting.get(reply.request_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(reply.value)

    def _send_leader_and_isr(self, effect: model.SendLeaderAndIsr) -> None:
        request = wire.leader_and_isr(self._broker_id, effect, self._settings.listener)
        self._channels.send(
            *effect.broker,
            ControllerRequest(
                ApiKey.LEADER_AND_ISR,
                wire.LEADER_AND_ISR_VERSION,
                request,
                lambda response: self._post(wire.leader_and_isr_answered(effect, response)),
            ),
        )

    def _send_update_metadata(self, effect: model.SendUpdateMetadata) -> None:
        for broker_id, epoch in effect.brokers:
            request = wire.update_metadata(self._broker_id, effect, epoch)
            self._channels.send(
                broker_id,
                epoch,
                ControllerRequest(ApiKey.UPDATE_METADATA, wire.UPDATE_METADATA_VERSION, request),
            )

    def _send_stop_replica(self, effect: model.SendStopReplica) -> None:
        request = wire.stop_replica(self._broker_id, effect)
        deletes = any(item.delete for item in effect.partitions)
        self._channels.send(
            *effect.broker,
            ControllerRequest(
                ApiKey.STOP_REPLICA,
                wire.STOP_REPLICA_VERSION,
                request,
                (lambda response: self._post(wire.stop_replica_answered(effect, response)))
                if deletes
                else None,
            ),
        )
