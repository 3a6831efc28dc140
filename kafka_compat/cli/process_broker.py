"""The process of one broker, started by the supervisor of `kafka-compat serve --processes N`.

Its standard input is a socket to the supervisor, over which it receives its settings (orders.py) and, without
zookeeper.connect, reaches the metadata store. If the connection ends, the supervisor has exited, and this
process stops. Its only argument identifies it in `ps`.
"""

import asyncio
import os
import socket
import sys
from typing import Any

from kafka_compat.cli import foreground, log_output
from kafka_compat.cli.http_services import HttpServices, hooks_of, http_services
from kafka_compat.cli.orders import EXIT_REFUSED, READY, REFUSED, SERVE, STOP, Orders
from kafka_compat.cli.uncollected import uncollected
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.store.local_link import Link
from kafka_compat.coordination.store.remote_store import StoreClient
from kafka_compat.errors import StartupError

with uncollected():
    # Import the broker here, so that the import overlaps with the supervisor's startup.
    from kafka_compat.broker import Broker, cluster_broker
    from kafka_compat.cluster import membership as _membership  # noqa: F401


class BrokerProcess:
    """A broker in its own process: it waits for its settings, serves, and returns an exit code."""

    def __init__(self) -> None:
        self._link: Link
        self._orders: Orders | None = None
        self._instructed = asyncio.Event()
        """Set when the order to serve has arrived, or can no longer arrive."""
        self._store: StoreClient | None = None
        self._stop = foreground.Stop()

    async def run(self, connected: socket.socket) -> int:
        """Serve until the supervisor or a signal stops the broker, and return the exit code."""
        self._link = await Link.over(connected, self._receive, self._ended)
        self._stop.on_signals()
        await self._instructed.wait()
        if self._orders is None:
            return 0
        orders = self._orders
        config = BrokerConfig.from_properties(orders.settings)
        config.create_topics = orders.topics
        log_output.begin(verbose=orders.verbose, broker_id=config.broker_id)
        log_output.obey(config, verbose=orders.verbose, broker_id=config.broker_id)
        http = None
        try:
            http = http_services(config)
            broker = self._broker(config, http)

            def ready() -> None:
                listening = [[name, host, port] for name, (host, port) in broker.addresses.items()]
                log_output.tell(config, foreground.ready_line(broker), config.broker_id)
                url = http.url if http is not None else None
                if url is not None:
                    log_output.tell(config, f"Broker {config.broker_id} HTTP on {url}", config.broker_id)
                if http is not None:
                    http.serve([broker])
                self._link.send([READY, listening, url or ""])

            # Without ZooKeeper, do not move leadership to other brokers, because all brokers stop together.
            return await foreground.serve(broker, self._stop, ready, hands_over=self._store is None)
        except StartupError as error:
            self._link.send([REFUSED, str(error)])
            return EXIT_REFUSED
        finally:
            if http is not None:
                await http.close()
            self._link.close()
            await self._link.ended.wait()

    def _broker(self, config: BrokerConfig, http: HttpServices | None) -> Broker:
        if config.str("zookeeper.connect"):
            return foreground.new_broker(config, http)
        self._store = StoreClient(self._link.send, config.int("zookeeper.session.timeout.ms"))
        return cluster_broker(config, self._store.connect, hooks_of(http))

    def _receive(self, message: list[Any]) -> None:
        if message[0] == SERVE:
            self._orders = Orders.decode(message)
            self._instructed.set()
        elif message[0] == STOP:
            self._request_stop(at_once=message[1])
        elif self._store is not None:
            self._store.receive(message)

    def _ended(self) -> None:
        self._request_stop(at_once=False)
        if self._store is not None:
            self._store.lost()

    def _request_stop(self, *, at_once: bool) -> None:
        # If a signal reaches all processes, it and the supervisor's stop order count as one request.
        self._stop.requested.set()
        if at_once:
            self._stop.requested_again.set()
        self._instructed.set()


def main() -> int:
    """Run the broker, with the socket to the supervisor as standard input. Return the exit code."""
    try:
        connected = socket.socket(fileno=os.dup(0))
    except OSError:
        print("only `kafka-compat serve --processes N` can start this", file=sys.stderr)
        return EXIT_REFUSED
    # Replace standard input: otherwise, child processes would inherit the connection to the supervisor, and
    # keep it open after this process exits.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return foreground.run_loop(BrokerProcess().run(connected))


if __name__ == "__main__":
    sys.exit(main())
