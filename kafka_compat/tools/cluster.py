"""kafka-cluster: show the cluster's ID and its brokers' addresses, and unregister brokers."""

import sys
from typing import Final, TextIO

from kafka_compat.client.cluster import Cluster
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.tools import show
from kafka_compat.tools.admin import connected, settings_in
from kafka_compat.tools.arguments import Argument, Arguments, check_required, fail, parse, parse_command
from kafka_compat.tools.failure import Failure, check, of_client, report

_PROGRAM: Final = "kafka-cluster"
_PAGE: Final = "cluster"
_ADDRESSES: Final = ("bootstrap-server", "bootstrap-controller")
_BASE: Final = {
    "json": Argument("True"),
    "config": Argument("String"),
    "command-config": Argument("String", letter="c"),
    "bootstrap-server": Argument("String", letter="b"),
    "bootstrap-controller": Argument("String", letter="C"),
}
_COMMANDS: Final[dict[str, dict[str, Argument]]] = {
    "cluster-id": _BASE,
    "unregister": {**_BASE, "id": Argument("Integer", True, "i")},
    "list-endpoints": {**_BASE, "include-fenced-brokers": Argument("True")},
}
_RACK_WIDTH: Final = 10


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    _, rest = parse(_PROGRAM, _PAGE, {}, arguments, until=tuple(_COMMANDS))
    command, options = parse_command(_PROGRAM, _PAGE, _COMMANDS, rest)
    page = f"{_PAGE}-{command}"
    check_required(_PROGRAM, page, _COMMANDS[command], options)
    chosen = [name for name in _ADDRESSES if name in options]
    if not chosen:
        text = "one of the arguments --bootstrap-server/-b --bootstrap-controller/-C is required"
        fail(_PROGRAM, page, text)
    if len(chosen) > 1:
        text = "argument --bootstrap-controller/-C: not allowed with argument --bootstrap-server/-b"
        fail(_PROGRAM, page, text)
    try:
        with connected(options[_bootstrap(options)], _settings(options)) as cluster:
            _ACTIONS[command](cluster, options)
    except Exception as error:
        return report(of_client(error))
    return 0


def _bootstrap(options: Arguments) -> str:
    if "bootstrap-controller" in options:
        text = "--bootstrap-controller is not supported: give --bootstrap-server"
        raise Failure("org.apache.kafka.common.errors.UnsupportedVersionException", text)
    return "bootstrap-server"


def _settings(options: Arguments) -> dict[str, str]:
    if "config" in options and "command-config" in options:
        text = "--config and --command-config exclude each other."
        raise Failure("net.sourceforge.argparse4j.inf.ArgumentParserException", text)
    if "config" in options:
        print("Option --config is deprecated: use --command-config.", file=sys.stderr)
    path = options.get("command-config", options.get("config"))
    return {} if path is None else settings_in(path)


def _cluster_id(cluster: Cluster, options: Arguments) -> None:
    answer = cluster.ask(ApiKey.DESCRIBE_CLUSTER, "describeCluster")
    check(answer)
    if "json" in options:
        show.as_json({"cluster_id": answer.cluster_id})
    else:
        print(f"Cluster ID: {answer.cluster_id}")


def _unregister(cluster: Cluster, options: Arguments) -> None:
    broker_id = int(options["id"])
    try:
        answer = cluster.ask(ApiKey.UNREGISTER_BROKER, "unregisterBroker", broker_id=broker_id)
    except KafkaError as error:
        if error.code != ErrorCode.UNSUPPORTED_VERSION:
            raise
        print("The cluster cannot unregister brokers.", file=_errors(options))
        return
    check(answer)
    if "json" in options:
        show.as_json({"unregistered": broker_id})
    else:
        print(f"Broker {broker_id} is unregistered.")


def _errors(options: Arguments) -> TextIO:
    return sys.stderr if "json" in options else sys.stdout


def _list_endpoints(cluster: Cluster, options: Arguments) -> None:
    fenced = "include-fenced-brokers" in options
    answer = cluster.ask(ApiKey.DESCRIBE_CLUSTER, "describeCluster", include_fenced_brokers=fenced)
    check(answer)
    if "json" in options:
        show.as_json(
            [
                {
                    "id": each.broker_id,
                    "host": each.host,
                    "port": each.port,
                    "rack": each.rack,
                    "state": _state(each.is_fenced),
                }
                for each in answer.brokers
            ]
        )
        return
    host_width = max((len(each.host) for each in answer.brokers), default=1)
    rack_width = max((len(each.rack) for each in answer.brokers if each.rack), default=_RACK_WIDTH)
    for row in (
        ("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"),
        *(
            (each.broker_id, each.host, each.port, each.rack or "null", _state(each.is_fenced), "broker")
            for each in answer.brokers
        ),
    ):
        number, host, port, rack, state, kind = map(str, row)
        print(f"{number:<10} {host:<{host_width}} {port:<10} {rack:<{rack_width}} {state:<10} {kind:<15}")


def _state(is_fenced: bool) -> str:
    return "fenced" if is_fenced else "unfenced"


_ACTIONS: Final = {"cluster-id": _cluster_id, "unregister": _unregister, "list-endpoints": _list_endpoints}
