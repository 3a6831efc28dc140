"""`kafka-compat health`: the exit code reports whether the configured broker responds."""

import socket
import threading

from tests.support.ports import free_port
from tests.support.servers import KafkaCompatBroker, run_kafka_compat


def health(address: str, *arguments: str) -> tuple[int, str]:
    result = run_kafka_compat("health", f"--override=listeners=PLAINTEXT://{address}", *arguments)
    return result.returncode, result.stderr


def test_a_serving_broker_is_healthy(shared_broker: KafkaCompatBroker) -> None:
    assert health(shared_broker.address) == (0, "")
    everywhere = f"0.0.0.0:{shared_broker.port}"
    assert health(everywhere) == (0, "")


def test_an_unreachable_broker_is_reported_with_its_address() -> None:
    address = f"127.0.0.1:{free_port()}"
    code, told = health(address)
    assert code == 1
    assert address in told
    assert "refused" in told


def test_a_hanging_broker_is_not_healthy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        code, told = health(f"127.0.0.1:{silent.getsockname()[1]}", "--timeout=0.3")
    assert (code, "timed out" in told) == (1, True)


def test_a_server_with_a_different_protocol_is_not_healthy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            connection, _ = other.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        code, told = health(f"127.0.0.1:{other.getsockname()[1]}")
        thread.join()
    assert (code, "no broker" in told) == (1, True)


def test_invalid_settings_are_reported() -> None:
    code, told = health("nonsense")
    assert code == 2
    assert "listeners" in told
