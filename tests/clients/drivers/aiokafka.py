"""aiokafka behind the line protocol of channel.py. One event loop in a thread runs all members."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Coroutine
from typing import Any

import aiokafka.errors
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.structs import OffsetAndMetadata

from tests.clients.drivers.channel import Answer, MemberLog, serve, to_bytes, to_text
from tests.support.client_security import for_aiokafka

STRATEGIES = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


def code_of(error: BaseException) -> int | None:
    if isinstance(error, aiokafka.errors.MessageSizeTooLargeError):  # rejected by the client
        return 10
    if isinstance(error, aiokafka.errors.ProducerFenced):  # raised for error codes 47 and 90
        return 90
    return getattr(error, "errno", None)


def _raise_for(code: int) -> None:
    if code != 0:
        raise aiokafka.errors.for_code(code)()


class Member:
    """A group member: a task that polls until it is stopped."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self.log = MemberLog()
        self.consumer = consumer
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self.consumer.start()
        except aiokafka.errors.KafkaError as failure:
            self.log.error = repr(failure)
            return
        while True:
            try:
                polled = await self.consumer.getmany(timeout_ms=50)
            except aiokafka.errors.KafkaError as failure:
                self.log.error = repr(failure)
                continue
            with self.log.lock:
                self.log.assignment = [(part.topic, part.partition) for part in self.consumer.assignment()]
                for records in polled.values():
                    self.log.received += [(found.topic, found.partition, found.offset) for found in records]

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        await self.consumer.stop()


class Client:
    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._transactional: dict[str, AIOKafkaProducer] = {}
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def __getattribute__(self, name: str) -> Any:
        """Wrap the verbs, which are coroutines, in functions that wait for their result."""
        found = object.__getattribute__(self, name)
        if name.startswith("_") or not asyncio.iscoroutinefunction(found):
            return found

        def call(**arguments: Any) -> Any:
            work: Coroutine[Any, Any, Any] = found(**arguments)
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

        return call

    async def _as_admin(self, bootstrap: str, verb: str, *arguments: Any, **named: Any) -> Any:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, **for_aiokafka())
        await admin.start()
        try:
            work: Awaitable[Any] = getattr(admin, verb)(*arguments, **named)
            return await work
        finally:
            await admin.close()

    async def _consumer(self, bootstrap: str, **settings: Any) -> AIOKafkaConsumer:
        # A consumer without read permission waits for the request timeout, and again when it is closed.
        given = {"enable_auto_commit": False, "request_timeout_ms": 10_000, **settings}
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, **for_aiokafka(), **given)
        await consumer.start()
        return consumer

    async def produce(
        self,
        bootstrap: str,
        topic: str,
        records: list[Answer],
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        max_request_bytes: int = 1_048_576,
    ) -> Answer:
        producer = AIOKafkaProducer(
            **for_aiokafka(),
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all" if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            max_request_size=max_request_bytes,
            linger_ms=20,
        )
        await producer.start()
        try:
            return await self._sent(producer, topic, records)
        finally:
            await producer.stop()

    async def _sent(self, producer: AIOKafkaProducer, topic: str, records: list[Answer]) -> Answer:
        sent: list[asyncio.Future[Any] | BaseException] = []
        for record in records:
            try:
                future = await producer.send(
                    topic,
                    value=to_bytes(record.get("value")),
                    key=to_bytes(record.get("key")),
                    partition=record.get("partition"),
                    timestamp_ms=record.get("timestamp"),
                    headers=[(name, to_bytes(value)) for name, value in record.get("headers", [])],
                )
                sent.append(future)
            except aiokafka.errors.KafkaError as error:
                sent.append(error)
        results: list[Any] = []
        for pending in sent:
            try:
                if isinstance(pending, BaseException):
                    raise pending
                done = await asyncio.wait_for(pending, 30)
                results.append(None if done is None else [done.partition, done.offset])  # acks=0
            except aiokafka.errors.KafkaError as error:
                results.append({"error": code_of(error)})
        return {"results": results}

    async def _begin(self, bootstrap: str, id: str, topic: str, records: list[Answer]) -> Answer:
        if id not in self._transactional:
            producer = AIOKafkaProducer(
                **for_aiokafka(), bootstrap_servers=bootstrap, transactional_id=id, linger_ms=20
            )
            await producer.start()
            self._transactional[id] = producer
        await asyncio.wait_for(self._transactional[id].begin_transaction(), 30)
        return await self._sent(self._transactional[id], topic, records)

    async def _end(self, id: str, end: str) -> Answer:
        producer = self._transactional[id]
        ending = producer.commit_transaction() if end == "commit" else producer.abort_transaction()
        await asyncio.wait_for(ending, 30)
        return {}

    async def transaction_open(self, **begin: Any) -> Answer:
        return await self._begin(**begin)

    async def transaction_end(self, id: str, end: str) -> Answer:
        return await self._end(id, end)

    async def transaction(self, end: str, **begin: Any) -> Answer:
        answer = await self._begin(**begin)
        await self._end(begin["id"], end)
        return answer

    async def consume(
        self,
        bootstrap: str,
        topic: str,
        partitions: list[int],
        start: str | int,
        count: int,
        reset: str = "none",
        isolation: str = "read_uncommitted",
        timeout_s: float = 20,
    ) -> Answer:
        consumer = await self._consumer(bootstrap, auto_offset_reset=reset, isolation_level=isolation)
        parts = [TopicPartition(topic, number) for number in partitions]
        found: list[Answer] = []
        try:
            consumer.assign(parts)
            if start == "earliest":
                await consumer.seek_to_beginning(*parts)
            elif start == "latest":
                await consumer.seek_to_end(*parts)
            else:
                for part in parts:
                    consumer.seek(part, int(start))
            deadline = self._loop.time() + timeout_s
            while len(found) < count and self._loop.time() < deadline:
                for part, records in (await consumer.getmany(timeout_ms=200)).items():
                    found += [
                        {
                            "partition": part.partition,
                            "offset": record.offset,
                            "key": to_text(record.key),
                            "value": to_text(record.value),
                            "timestamp": record.timestamp,
                            "timestamp_type": record.timestamp_type,
                            "headers": [[name, to_text(value)] for name, value in record.headers],
                        }
                        for record in records
                    ]
        finally:
            await consumer.stop()
        return {"records": found}

    async def offsets(self, bootstrap: str, topic: str, partitions: list[int], at: str | int) -> Answer:
        consumer = await self._consumer(bootstrap)
        parts = [TopicPartition(topic, number) for number in partitions]
        try:
            if isinstance(at, int):
                times = await consumer.offsets_for_times(dict.fromkeys(parts, at))
                return {
                    "offsets": {
                        part.partition: None if hit is None else hit.offset for part, hit in times.items()
                    }
                }
            found = consumer.beginning_offsets(parts) if at == "earliest" else consumer.end_offsets(parts)
            return {"offsets": {part.partition: offset for part, offset in (await found).items()}}
        finally:
            await consumer.stop()

    async def commit(self, bootstrap: str, group: str, topic: str, offsets: dict[str, list[Any]]) -> Answer:
        consumer = await self._consumer(bootstrap, group_id=group)
        try:
            consumer.assign([TopicPartition(topic, int(number)) for number in offsets])
            await consumer.commit(
                {
                    TopicPartition(topic, int(number)): OffsetAndMetadata(offset, metadata)
                    for number, (offset, metadata) in offsets.items()
                }
            )
        finally:
            await consumer.stop()
        return {}

    async def committed(self, bootstrap: str, group: str, topic: str, partitions: list[int]) -> Answer:
        asked = [TopicPartition(topic, number) for number in partitions]
        found = await self._as_admin(bootstrap, "list_consumer_group_offsets", group, partitions=asked)
        return {
            "committed": {
                part.partition: [hit.offset, hit.metadata] if hit.offset >= 0 else None
                for part, hit in found.items()
            }
        }

    async def member_start(
        self,
        bootstrap: str,
        member: str,
        group: str,
        topics: list[str],
        strategy: str = "range",
        instance: str | None = None,
        session_timeout_ms: int = 6000,
    ) -> Answer:
        consumer = AIOKafkaConsumer(
            *topics,
            **for_aiokafka(),
            bootstrap_servers=bootstrap,
            group_id=group,
            group_instance_id=instance,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            partition_assignment_strategy=[STRATEGIES[strategy]],
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=300,
            metadata_max_age_ms=1000,
        )
        self._members[member] = Member(consumer)
        await self._members[member].start()
        return {}

    def member_state(self, member: str) -> Answer:
        return self._members[member].log.state()

    async def member_commit(self, member: str) -> Answer:
        with contextlib.suppress(
            aiokafka.errors.IllegalStateError
        ):  # the member has no partitions at the moment
            await self._members[member].consumer.commit()
        return {}

    async def member_stop(self, member: str) -> Answer:
        await self._members.pop(member).stop()
        return {}

    async def create_topic(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        replication: int = 1,
        configs: dict[str, str] | None = None,
    ) -> Answer:
        new = NewTopic(topic, partitions, replication, topic_configs=configs or {})
        answer = await self._as_admin(bootstrap, "create_topics", [new])
        _raise_for(answer.topic_errors[0][1])
        return {}

    async def delete_topic(self, bootstrap: str, topic: str) -> Answer:
        answer = await self._as_admin(bootstrap, "delete_topics", [topic])
        _raise_for(answer.topic_error_codes[0][1])
        return {}

    async def list_topics(self, bootstrap: str) -> Answer:
        return {"topics": sorted(await self._as_admin(bootstrap, "list_topics"))}

    async def describe_topic(self, bootstrap: str, topic: str) -> Answer:
        (described,) = await self._as_admin(bootstrap, "describe_topics", [topic])
        _raise_for(described["error_code"])
        return {
            "partitions": sorted(
                [part["partition"], len(part["replicas"]), len(part["isr"])]
                for part in described["partitions"]
            )
        }

    async def topic_config(self, bootstrap: str, topic: str) -> Answer:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = await self._as_admin(bootstrap, "describe_configs", [resource])
        code, _, _, _, entries = answer.resources[0]
        _raise_for(code)
        default_config = 5
        return {"configs": {entry[0]: [entry[1], entry[3] == default_config] for entry in entries}}

    async def set_topic_config(self, bootstrap: str, topic: str, configs: dict[str, str]) -> Answer:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs)
        (answer,) = await self._as_admin(bootstrap, "alter_configs", [resource])
        _raise_for(answer.resources[0][0])
        return {}

    async def add_partitions(self, bootstrap: str, topic: str, total: int) -> Answer:
        await self._as_admin(bootstrap, "create_partitions", {topic: NewPartitions(total)})
        return {}

    async def delete_records(self, bootstrap: str, topic: str, before: dict[str, int]) -> Answer:
        asked = {
            TopicPartition(topic, int(number)): RecordsToDelete(before_offset=offset)
            for number, offset in before.items()
        }
        found = await self._as_admin(bootstrap, "delete_records", asked)
        return {"low": {part.partition: low for part, low in found.items()}}

    async def list_groups(self, bootstrap: str) -> Answer:
        return {"groups": sorted(name for name, _ in await self._as_admin(bootstrap, "list_consumer_groups"))}

    async def describe_group(self, bootstrap: str, group: str) -> Answer:
        (answer,) = await self._as_admin(bootstrap, "describe_consumer_groups", [group])
        code, _, state, _, _, members = answer.groups[0]
        _raise_for(code)
        return {"state": state.lower(), "hosts": len(members)}

    async def group_offsets(self, bootstrap: str, group: str) -> Answer:
        found = await self._as_admin(bootstrap, "list_consumer_group_offsets", group)
        return {"offsets": sorted([part.topic, part.partition, hit.offset] for part, hit in found.items())}

    async def describe_cluster(self, bootstrap: str) -> Answer:
        found = await self._as_admin(bootstrap, "describe_cluster")
        return {"nodes": len(found["brokers"]), "has_cluster_id": bool(found["cluster_id"])}


if __name__ == "__main__":
    serve(Client(), code_of)
