"""One term of this broker as controller: it passes events to the state machine
(coordination/controller/machine.py) and carries out the effects.

Rules
1. Jobs run one at a time. A job reads the nodes that an event needs, passes the event to the state machine,
   carries out the effects, and passes the results of writes to the state machine before the next job begins.
2. A term is bound to one session with the store. It ends with Deposed or SessionExpired, and pending requests
   then get NOT_CONTROLLER.
3. A read or write without a response is retried. This is safe, because writes are conditional on versions or
   write the whole value.
4. A malformed node does not cause an event. It is watched, and read again when it changes. Until it is
   repaired, a known topic keeps its state, and an unknown topic is ignored, even if its deletion is
   requested.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from functools import partial
from types import ModuleType
from typing import TypeVar

from kafka_compat.cluster.broker_channels import BrokerChannels, ControllerRequest
from kafka_compat.cluster.controller_election import ControllerEpoch
from kafka_compat.cluster.controller_nodes import RETRY_S, ControllerNodes
from kafka_compat.cluster.controller_settings import ControllerTermSettings
from kafka_compat.cluster.controller_times import Backlog, ControllerTimes, TimedQueue
from kafka_compat.coordination.controller import effects, events
from kafka_compat.coordination.controller import outcomes as model
from kafka_compat.coordination.controller.machine import Controller
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, TopicState
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode, MalformedNodes
from kafka_compat.coordination.store.metadata_store import ConnectionLost, MetadataStore, Watch
from kafka_compat.coordination.store.metadata_store import Event as StoreEvent
from kafka_compat.long_work import LongWork, Turn
from kafka_compat.metadata import topic_log
from kafka_compat.metadata.topic_nodes import new_topic_id

log = logging.getLogger(__name__)

UNCLEAN = "unclean.leader.election.enable"
FIRST_REBALANCE_S = 5.0

T = TypeVar("T")
Job = Callable[[], Awaitable[events.Event | None]]


class ControllerTerm:
    def __init__(
        self,
        broker_id: int,
        epoch: ControllerEpoch,
        store: MetadataStore,
        settings: ControllerTermSettings,
        malformed: MalformedNodes,
        long_work: LongWork,
        times: ControllerTimes,
    ) -> None:
        self._broker_id = broker_id
        self.epoch = epoch
        self._settings = settings
        self._unclean_default = settings.unclean_default
        self._nodes = ControllerNodes(store, malformed)
        self.machine = Controller(broker_id, settings.machine)
        self._long_work = long_work
        self.channels = BrokerChannels(
            f"controller-{broker_id}",
            settings.listener,
            settings.request_timeout_ms,
            long_work,
            broker_id,
            settings.security,
            times.answered,
        )
        self._times = times
        self._jobs: TimedQueue[Job] = TimedQueue(times.waited.add)
        self._watched: set[str] = set()
        self._request_ids = itertools.count()
        self._waiting: dict[Hashable, asyncio.Future[effects.ReplyValue]] = {}
        self._unclean_topics: dict[str, bool] = {}
        self._brokers: dict[int, BrokerInfo] = {}
        self._malformed_topics: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._over = False
        self._turn: Turn | None = None
        """The turns on the event loop in which the current event is handled, once it takes long."""

    async def run(self) -> None:
        """Act as controller until Deposed or SessionExpired is raised, or the task is canceled."""
        try:
            await self._handle(await self._persist(self._elected))
            if self._settings.rebalance_interval_s is not None:
                self._schedule_rebalance(FIRST_REBALANCE_S)
            while True:
                event = await self._persist(await self._jobs.get())
                if event is not None:
                    await self._handle(event)
        finally:
            self._over = True
            if self._timer is not None:
                self._timer.cancel()
            for effect in self.machine.handle(events.Resigned()):
                if isinstance(effect, effects.Reply):
                    self._answer(effect)
            for waiting in self._waiting.values():
                # Cancel a request that is still queued, because the state machine will not reply to it.
                waiting.cancel()
            await self.channels.close()

    async def ask(self, make: Callable[[Hashable], events.Event]) -> effects.ReplyValue | None:
        """Return the state machine's reply to a request, or None if the term is over. `make` builds the
        request from a request ID. It is called when the request is processed, after the controller has read
        all topics.
        """
        if self._over:
            return None
        request_id = next(self._request_ids)
        waiting: asyncio.Future[effects.ReplyValue] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = waiting

        async def job() -> events.Event:
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

    @property
    def backlog(self) -> Backlog:
        """The queued jobs, unsent requests and pending topic deletions."""
        return Backlog(self._jobs.qsize(), self.channels.unsent, self.machine.deletions)

    def topic_settings_changed(self, topic: str) -> None:
        """Queue a job that reads a topic's changed settings."""
        self._jobs.put_nowait(partial(self._unclean_changed, topic))

    def unclean_default_changed(self, allowed: bool) -> None:
        """Process a change of the default for unclean.leader.election.enable."""
        if allowed != self._unclean_default:
            self._unclean_default = allowed
            self._post(events.UncleanConfigChanged(allowed, dict(self._unclean_topics)))

    # --- events

    def _post(self, event: events.Event) -> None:
        async def job() -> events.Event:
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
        """Return a watch that queues `job`, or None if the path is already watched."""
        if path in self._watched:
            return None
        self._watched.add(path)

        def changed(event: StoreEvent) -> None:
            self._watched.discard(path)
            if not self._over:
                self._jobs.put_nowait(job)

        return changed

    async def _elected(self) -> events.Event:
        nodes, version = self._nodes, self.epoch.epoch_znode_version
        # Set all watches again, because an interrupted attempt may have lost some. Duplicates are harmless.
        self._watched.clear()
        await nodes.enable_features(version, self._settings.protocol.feature_node)
        # Delete old notifications, because a newly elected controller reads all states.
        await nodes.take_isr_changes(self._watch(znodes.ISR_CHANGES, self._isrs_changed), version)
        await nodes.take_log_dir_events(self._watch(znodes.LOG_DIR_EVENTS, self._log_dirs_failed), version)
        brokers = await self._read_brokers()
        names = await nodes.topic_names(self._watch(znodes.TOPICS, self._topics_changed))
        topics = await self._read_topics(names)
        await self._read_unclean(names)
        return events.Elected(
            controller_epoch=self.epoch.controller_epoch,
            epoch_znode_version=version,
            brokers=brokers,
            topics=topics,
            states=await nodes.states(_partitions(topics), self._watch_state),
            deletions=await self._read_deletions(),
            unclean_default=self._unclean_default,
            unclean_topics=dict(self._unclean_topics),
            preferred_elections=await nodes.legacy_elections(
                self._watch(znodes.PREFERRED_REPLICA_ELECTION, self._election_found), version
            ),
            reassignments=await nodes.legacy_reassignments(
                self._watch(znodes.REASSIGN_PARTITIONS, self._reassignment_found)
            ),
        )

    async def _read_brokers(self) -> tuple[BrokerInfo, ...]:
        found = await self._nodes.brokers(
            self._watch(znodes.BROKER_IDS, self._brokers_changed),
            lambda broker_id: self._watch(znodes.broker_path(broker_id), self._brokers_changed),
            self._brokers,
        )
        # Forget the watches of brokers that have left, so that new ones are set when the brokers return.
        there = {znodes.broker_path(broker_id) for broker_id in found}
        prefix = f"{znodes.BROKER_IDS}/"
        self._watched = {path for path in self._watched if not path.startswith(prefix) or path in there}
        brokers = tuple(broker for broker in found.values() if isinstance(broker, BrokerInfo))
        self._brokers = {broker.broker_id: broker for broker in brokers}
        self.channels.set_brokers(brokers)
        return brokers

    async def _read_topics(self, names: list[str]) -> tuple[TopicState, ...]:
        found = await self._nodes.topics(
            names, lambda name: self._watch(znodes.topic_path(name), partial(self._topic_changed, name))
        )
        complete = []
        for name in names:
            topic = found.get(name)
            self._malformed_topics.discard(name)
            if topic is None:
                self._watched.discard(znodes.topic_path(name))
            elif isinstance(topic, MalformedNode):
                self._malformed_topics.add(name)
            elif topic.topic_id is None:
                # Assign an ID to a topic created before Kafka 2.8 or by a ZooKeeper client (KIP-516).
                complete.append(topic._replace(topic_id=new_topic_id()))
                await self._nodes.write_topic(complete[-1], self.epoch.epoch_znode_version)
            else:
                complete.append(topic)
        return tuple(complete)

    async def _read_deletions(self) -> tuple[str, ...]:
        topics = await self._nodes.deletions(self._watch(znodes.DELETE_TOPICS, self._deletions_requested))
        return tuple(topic for topic in topics if topic not in self._malformed_topics)

    def _watch_state(self, partition: model.TopicPartition) -> Watch | None:
        return self._watch(znodes.partition_state_path(*partition), partial(self._state_mended, partition))

    async def _read_unclean(self, names: list[str]) -> bool:
        before = dict(self._unclean_topics)
        settings = await self._nodes.topic_settings(names, UNCLEAN)
        for name in names:
            if name in settings:
                self._unclean_topics[name] = settings[name] == "true"
            else:
                self._unclean_topics.pop(name, None)
        return before != self._unclean_topics

    async def _brokers_changed(self) -> events.Event:
        return events.BrokersChanged(await self._read_brokers())

    async def _topics_changed(self) -> events.Event:
        names = await self._nodes.topic_names(self._watch(znodes.TOPICS, self._topics_changed))
        known = self.machine.topics
        new = [name for name in names if name not in known]
        if await self._read_unclean(new):
            await self._handle(events.UncleanConfigChanged(self._unclean_default, dict(self._unclean_topics)))
        mended = self._malformed_topics.intersection(new)
        loaded = await self._read_topics(new)
        known_before = _partitions(topic for topic in loaded if topic.name in mended)
        states = await self._nodes.states(known_before, self._watch_state)
        return events.TopicsChanged(frozenset(names), loaded, states)

    async def _topic_changed(self, name: str) -> events.Event | None:
        if name in self.machine.topics:
            found = await self._read_topics([name])
            return events.PartitionsChanged(found[0]) if found else None
        if name not in self._malformed_topics:
            # The topic was deleted. If there is another one with its name, `_topics_changed` finds it.
            return None
        # Treat the topic as new, because its node was malformed until now. It may also await deletion.
        await self._handle(await self._topics_changed())
        return await self._deletions_requested()

    async def _state_mended(self, partition: model.TopicPartition) -> events.Event | None:
        states = await self._nodes.states([partition], self._watch_state)
        return events.StatesMended(states) if states else None

    async def _deletions_requested(self) -> events.Event:
        topics = await self._read_deletions()
        if not self.machine.topics >= set(topics):
            # Read new topics first, because unknown topics are treated as deleted.
            await self._handle(await self._topics_changed())
        return events.DeletionsRequested(
            tuple(topic for topic in topics if topic not in self._malformed_topics)
        )

    async def _election_found(self) -> events.Event | None:
        watch = self._watch(znodes.PREFERRED_REPLICA_ELECTION, self._election_found)
        partitions = await self._nodes.legacy_elections(watch, self.epoch.epoch_znode_version)
        return events.PreferredElectionFound(partitions) if partitions else None

    async def _reassignment_found(self) -> events.Event | None:
        watch = self._watch(znodes.REASSIGN_PARTITIONS, self._reassignment_found)
        targets = await self._nodes.legacy_reassignments(watch)
        return events.ReassignmentFound(targets) if targets else None

    async def _log_dirs_failed(self) -> events.Event | None:
        watch = self._watch(znodes.LOG_DIR_EVENTS, self._log_dirs_failed)
        brokers = await self._nodes.take_log_dir_events(watch, self.epoch.epoch_znode_version)
        return events.LogDirsFailed(brokers) if brokers else None

    async def _isrs_changed(self) -> events.Event | None:
        watch = self._watch(znodes.ISR_CHANGES, self._isrs_changed)
        states = await self._nodes.take_isr_changes(watch, self.epoch.epoch_znode_version)
        return events.IsrChangesFound(states) if states else None

    async def _unclean_changed(self, topic: str) -> events.Event | None:
        if not await self._read_unclean([topic]):
            return None
        return events.UncleanConfigChanged(self._unclean_default, dict(self._unclean_topics))

    def _schedule_rebalance(self, delay_s: float) -> None:
        def tick() -> None:
            self._post(events.RebalanceTick())
            assert self._settings.rebalance_interval_s is not None
            self._schedule_rebalance(self._settings.rebalance_interval_s)

        self._timer = asyncio.get_running_loop().call_later(delay_s, tick)

    # --- effects

    async def _handle(self, event: events.Event) -> None:
        events = [event]
        self._turn = None
        with self._times.at(event):
            while events:
                for effect in self.machine.handle(events.pop(0)):
                    outcome = await self._apply(effect)
                    if outcome is not None:
                        events.append(outcome)

    async def _apply(self, effect: effects.Effect) -> events.Event | None:
        nodes = self._nodes
        match effect:
            case effects.WriteStates(write_id, ()):
                # An effect without writes is a request to yield to the event loop.
                if self._turn is None:
                    self._turn = await self._long_work.begin()
                else:
                    await self._turn.pause_if_due()
                return events.StatesWritten(write_id, {}, {})
            case effects.WriteStates():
                return await self._persist(partial(nodes.write_states, effect))
            case effects.WriteTopic(topic, version, keeps_added):
                await self._persist(partial(nodes.write_topic, topic, version, keeps_added=keeps_added))
            case effects.DeleteTopicNodes(topics, version):
                await self._persist(partial(nodes.delete_topics, topics, version))
                for name in topics:
                    topic_log.deleted(name)
            case effects.ClearDeletions(topics, version):
                await self._persist(partial(nodes.clear_deletions, topics, version))
            case effects.ClearPreferredElection(version):
                await self._persist(partial(nodes.clear_legacy_election, version))
            case effects.WriteReassignments(targets, version):
                await self._persist(partial(nodes.write_legacy_reassignments, targets, version))
            case effects.SendLeaderAndIsr():
                self._send_leader_and_isr(effect)
            case effects.SendUpdateMetadata():
                self._send_update_metadata(effect)
            case effects.SendStopReplica():
                self._send_stop_replica(effect)
            case effects.Reply():
                self._answer(effect)
            case effects.Note(level, text):
                log.log(logging.WARNING if level is effects.Level.WARNING else logging.INFO, "%s", text)
        return None

    def _answer(self, reply: effects.Reply) -> None:
        waiting = self._waiting.get(reply.request_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(reply.value)

    def _send_leader_and_isr(self, effect: effects.SendLeaderAndIsr) -> None:
        if effect.broker.broker_id == self._broker_id:
            local = self._settings.local
            request = ControllerRequest("LeaderAndIsr", lambda _: local().lead_and_follow(effect), self._post)
        else:
            request = remote_requests().leader_and_isr(
                self._broker_id,
                effect,
                self._settings.listener,
                self._settings.protocol.leader_and_isr,
                self._post,
                self._long_work,
            )
        self.channels.send(*effect.broker, request)

    def _send_update_metadata(self, effect: effects.SendUpdateMetadata) -> None:
        remote = None
        for broker_id, epoch in effect.brokers:
            if broker_id == self._broker_id:
                request = ControllerRequest("UpdateMetadata", partial(self._update_local, effect, epoch))
            else:
                remote = remote or remote_requests().UpdateMetadata(
                    self._broker_id, effect, self._settings.protocol.update_metadata, self._long_work
                )
                request = remote.request(epoch)
            self.channels.send(broker_id, epoch, request)

    async def _update_local(self, effect: effects.SendUpdateMetadata, epoch: int, _: object) -> None:
        self._settings.local().update_metadata(effect, epoch)

    def _send_stop_replica(self, effect: effects.SendStopReplica) -> None:
        answered = self._post if any(item.delete for item in effect.partitions) else None
        if effect.broker.broker_id == self._broker_id:
            local = self._settings.local
            request = ControllerRequest("StopReplica", lambda _: local().stop(effect), answered)
        else:
            request = remote_requests().stop_replica(
                self._broker_id, effect, self._settings.protocol.stop_replica, answered
            )
        self.channels.send(*effect.broker, request)


def remote_requests() -> ModuleType:
    """Import and return `remote_requests`, which a standalone broker does not need."""
    from kafka_compat.cluster import remote_requests

    return remote_requests


def _partitions(topics: Iterable[TopicState]) -> Iterator[model.TopicPartition]:
    return (model.TopicPartition(topic.name, index) for topic in topics for index in topic.replicas)
