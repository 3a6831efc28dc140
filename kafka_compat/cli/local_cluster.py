"""`kafka-compat serve --brokers N`: a cluster of N brokers in one process with one metadata store."""

import asyncio
import logging
from functools import partial

from kafka_compat.broker import Broker, StartupError, cluster_broker
from kafka_compat.cli.foreground import STOP_TIMEOUT_S, keep_modules, tell_ready
from kafka_compat.cli.http_services import HttpServices, hooks_of, http_services
from kafka_compat.cli.local_brokers import Tree, broker_configs
from kafka_compat.cli.log_output import refuse, tell_started
from kafka_compat.cli.stop_signals import stop_signals
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.store.embedded import EmbeddedSession

log = logging.getLogger(__name__)


class LocalCluster:
    """The brokers of one process, and their metadata store."""

    def __init__(
        self, config: BrokerConfig, count: int, http: HttpServices | None = None, *, syncs: bool = True
    ) -> None:
        """Open the metadata store, and create the brokers. `syncs` is the parameter of BrokerHooks. Raises
        StartupError if a setting is invalid.
        """
        hooks = hooks_of(http, syncs=syncs)
        configs = broker_configs(config, count)
        self.tree = Tree(config, [each.log_dirs for each in configs], syncs=syncs)
        self.brokers = [
            cluster_broker(each, self._connect if http is None else http.store(each, self._connect), hooks)
            for each in configs
        ]
        self._wanted_topics = config.create_topics

    async def _connect(self) -> EmbeddedSession:
        return self.tree.store.connect()

    async def start(self) -> None:
        """Start all brokers. If a broker cannot start, stop all brokers and raise its exception."""
        session = await self._connect()
        if await session.exists(znodes.UNFINISHED_FORKS) is not None:
            from kafka_compat.control.topic_fork import delete_unfinished_forks

            await delete_unfinished_forks(session)
        await session.close()
        outcomes = await asyncio.gather(*(broker.start() for broker in self.brokers), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                await self.stop()
                raise outcome
        await self.brokers[0].membership.create_wanted_topics(self._wanted_topics)

    async def lose(self, broker: Broker) -> bool:
        """Stop a failed broker and return True. If no other broker is running, only return False."""
        self.brokers.remove(broker)
        if not self.brokers:
            self.brokers.append(broker)
            return False
        log.error("Broker %d failed and is stopping; the other brokers keep running", broker.broker_id)
        await broker.stop(controlled=False)
        return True

    async def stop(self) -> None:
        """Stop all brokers without controlled shutdown, because no broker remains to take over leadership.
        Raises TimeoutError if a broker does not stop within STOP_TIMEOUT_S; its logs are left as they are.
        """
        outcomes = await asyncio.gather(
            *(broker.stop(controlled=False, timeout_s=STOP_TIMEOUT_S) for broker in self.brokers),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        await self.tree.close()


async def serve_local_cluster(
    config: BrokerConfig, count: int, *, as_json: bool, kafka_lines: bool, syncs: bool
) -> int:
    """Run the cluster until SIGINT or SIGTERM, and return the exit code. With `kafka_lines`, print Kafka's
    startup messages for each broker. `syncs` is the parameter of BrokerHooks.
    """
    stop = asyncio.Event()
    failed = False
    loop = asyncio.get_running_loop()
    losing = set()

    async def lose(broker: Broker) -> None:
        if broker in cluster.brokers and not await cluster.lose(broker):
            stop.set()

    def fail(broker: Broker) -> None:
        nonlocal failed
        failed = True
        task = loop.create_task(lose(broker))
        losing.add(task)
        task.add_done_callback(losing.discard)

    for number in stop_signals():
        loop.add_signal_handler(number, stop.set)
    http = None
    try:
        http = http_services(config)
        cluster = LocalCluster(config, count, http, syncs=syncs)
        for broker in cluster.brokers:
            broker.on_fatal = partial(fail, broker)
        await cluster.start()
    except StartupError as error:
        if http is not None:
            await http.close()
        return refuse(str(error), config)
    tell_ready(cluster.brokers, http.url if http else None, as_json=as_json)
    if http is not None:
        http.serve(cluster.brokers, cluster.tree)
    if kafka_lines:
        for broker in cluster.brokers:
            tell_started(broker.broker_id)
    keeping = asyncio.ensure_future(keep_modules())
    await stop.wait()
    keeping.cancel()
    if http is not None:
        await http.close()
    try:
        await cluster.stop()
    except TimeoutError:
        log.error(
            "The brokers did not stop within %s s; their logs will be recovered at the next startup",
            STOP_TIMEOUT_S,
        )
        return 1
    return 1 if failed else 0
