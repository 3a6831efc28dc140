"""Connection creation rates of the broker, of each listener, and of each client address (KIP-612). No I/O.

If the rate of a listener or of the broker is exceeded, the listener waits for at most one window. If the rate
of a client address is exceeded, its connections are rejected and do not count. Rates without a limit are not
measured.
"""

from kafka_compat.quotas.rates import RateTable, SampledRate, Windows, throttle_time_ms

UNLIMITED = 2**31 - 1


class ConnectionRates:
    """Measured rates of new connections, and their limits. UNLIMITED means no limit."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._broker = SampledRate(windows)
        self._broker_max = UNLIMITED
        self._listeners: dict[str, SampledRate] = {}
        self._listener_max: dict[str, int] = {}
        self._addresses: RateTable[str] = RateTable(windows)
        self._address_max: dict[str, int] = {}
        self._default_max = UNLIMITED

    def limit(self, broker: int, listeners: dict[str, int]) -> None:
        """Set max.connection.creation.rate of the broker and of each listener."""
        self._broker_max = broker
        self._listener_max = listeners

    def limit_address(self, host: str | None, rate: int | None) -> None:
        """Set the limit of an address (None: all other addresses). A `rate` of None removes the limit."""
        if host is None:
            self._default_max = UNLIMITED if rate is None else rate
        elif rate is None:
            self._address_max.pop(host, None)
        else:
            self._address_max[host] = rate

    def wait_ms(self, listener: str, now_ms: int, *, with_broker: bool) -> int:
        """Count a connection. Return the time in ms that its listener must wait before it serves the
        connection and accepts another one.

        `with_broker` is true if the connection also counts toward the broker's limit.
        """
        wait_ms = 0
        for rate, bound in self._rates(listener, with_broker):
            wait_ms = max(wait_ms, self._recorded(rate, bound, now_ms))
        return wait_ms

    def refused_ms(self, listener: str, host: str, now_ms: int, *, with_broker: bool) -> int:
        """Return the time in ms to wait before closing the connection unserved, or 0 if it is accepted."""
        bound = self._address_max.get(host, self._default_max)
        if bound == UNLIMITED:
            return 0
        rate = self._addresses.of(host, now_ms)
        wait_ms = self._recorded(rate, bound, now_ms)
        if wait_ms > 0:
            for each in (rate, *(other for other, _ in self._rates(listener, with_broker))):
                each.record(-1, now_ms)
        return wait_ms

    def _rates(self, listener: str, with_broker: bool) -> list[tuple[SampledRate, int]]:
        found = []
        if with_broker and self._broker_max != UNLIMITED:
            found.append((self._broker, self._broker_max))
        bound = self._listener_max.get(listener, UNLIMITED)
        if bound != UNLIMITED:
            rate = self._listeners.get(listener)
            if rate is None:
                rate = self._listeners[listener] = SampledRate(self._windows)
            found.append((rate, bound))
        return found

    def _recorded(self, rate: SampledRate, bound: int, now_ms: int) -> int:
        rate.record(1, now_ms)
        value, window_ms = rate.measure(now_ms)
        return min(throttle_time_ms(value, bound, window_ms), self._windows.size_ms)
