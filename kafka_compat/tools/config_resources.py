"""kafka-configs for resources with settings: topics, brokers, loggers, client metrics, groups."""

from typing import Any, Final

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.tools import show
from kafka_compat.tools.failure import (
    Failure,
    check,
    illegal_argument,
    in_background,
    invalid_configuration,
    is_number,
)
from kafka_compat.tools.options import Options

_RESOURCES: Final = {"topics": 2, "brokers": 4, "broker-loggers": 8, "client-metrics": 16, "groups": 32}
_SOURCES: Final = {
    0: "UNKNOWN",
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
CLIENT_METRICS: Final = "client-metrics"
_OWN_SOURCE: Final = {"topics": 1, "client-metrics": 7, "groups": 8}
_SET: Final = 0
_DELETE: Final = 1


def describe_resources(cluster: Any, options: Options, kind: str, names: list[str]) -> None:
    """Run --describe. Raises Failure if a request fails."""
    everything = options.has("all")
    if not everything and names and names[0] and not _is_there(cluster, kind, names[0]):
        if options.as_json:
            show.as_json([])
        else:
            print(f"The {kind[:-1]} '{names[0]}' does not exist and has no settings of its own.")
        return
    described = []
    for name in names[:1] or _all_names(cluster, kind):
        if not options.as_json and name:
            print(f"{'All' if everything else 'Dynamic'} configs for {kind[:-1]} {name} are:")
        elif not options.as_json:
            print(f"Default configs for {kind} in the cluster are:")
        found = configs_of(cluster, kind, name, everything, with_synonyms=True)
        if options.as_json:
            described.append({"type": kind, "name": name, "configs": [_as_json(each) for each in found]})
            continue
        for each in found:
            synonyms = ", ".join(
                f"{_SOURCES.get(one.source)}:{one.name}={_text(one.value)}" for one in each.synonyms
            )
            sensitive = "true" if each.is_sensitive else "false"
            print(f"  {each.name}={_text(each.value)} sensitive={sensitive} synonyms={{{synonyms}}}")
    if options.as_json:
        show.as_json(described)


def _text(value: str | None) -> str:
    return "null" if value is None else value


def _as_json(config: Any) -> dict[str, Any]:
    return {
        "name": config.name,
        "value": config.value,
        "source": _SOURCES.get(config.config_source, "UNKNOWN"),
        "sensitive": config.is_sensitive,
        "read_only": config.read_only,
        "synonyms": [
            {"name": one.name, "value": one.value, "source": _SOURCES.get(one.source, "UNKNOWN")}
            for one in config.synonyms
        ],
    }


def _all_names(cluster: Any, kind: str) -> list[str]:
    if kind == "topics":
        return [topic.name for topic in cluster.metadata(None, "listTopics").topics]
    if kind in ("brokers", "broker-loggers"):
        return [*(str(node.node_id) for node in cluster.brokers()), ""]
    if kind == "groups":
        return list(dict.fromkeys([*_group_ids(cluster), *(_listed(cluster, kind) or ())]))
    return names_of(cluster, kind)


def _is_there(cluster: Any, kind: str, name: str) -> bool:
    if kind == "topics":
        _check_name(kind, name)
    if kind in ("topics", "brokers", "broker-loggers"):
        return name in _all_names(cluster, kind)
    if kind == "groups":
        listed = _listed(cluster, kind)
        return name in _group_ids(cluster) or listed is None or name in listed
    return name in names_of(cluster, kind)


def _group_ids(cluster: Any) -> list[str]:
    from kafka_compat.client.groups import all_groups

    with in_background():
        return [group.group_id for group in all_groups(cluster)]


def _listed(cluster: Any, kind: str) -> list[str] | None:
    """Return the resources that have settings, or None if the brokers are too old to list them."""
    try:
        return names_of(cluster, kind)
    except Failure as failure:
        if failure.cause is None or not failure.cause.kind.endswith(".UnsupportedVersionException"):
            raise
        return None


def names_of(cluster: Any, kind: str) -> list[str]:
    """Return the names of this kind's resources that have settings. Raises Failure if a request fails."""
    call = "listConfigResources"
    with in_background():
        (node, *_) = cluster.brokers()
        if kind != "client-metrics" and cluster.version(node.node_id, ApiKey.LIST_CONFIG_RESOURCES, call) < 1:
            text = "The v0 ListConfigResources only supports CLIENT_METRICS"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
        answer = cluster.ask(ApiKey.LIST_CONFIG_RESOURCES, call, resource_types=[_RESOURCES[kind]])
    check(answer)
    return [each.resource_name for each in answer.config_resources]


def configs_of(
    cluster: Any, kind: str, name: str, everything: bool = False, *, with_synonyms: bool = False
) -> list[Any]:
    """Return a resource's overridden settings, or all if `everything`. Raises Failure if a request fails."""
    from kafka_compat.protocol.messages.describe_configs import DescribeConfigsResource

    _check_name(kind, name)
    resource = DescribeConfigsResource(
        resource_type=_RESOURCES[kind], resource_name=name, configuration_keys=None
    )
    request = {"resources": [resource], "include_synonyms": with_synonyms}
    answer = _ask(cluster, kind, name, ApiKey.DESCRIBE_CONFIGS, "describeConfigs", request)
    (result,) = answer.results
    check(result)
    own = _OWN_SOURCE.get(kind)
    if kind == "brokers":
        own = 2 if name else 3
    found = [each for each in result.configs if everything or own is None or each.config_source == own]
    return sorted(found, key=lambda each: str(each.name))


def _check_name(kind: str, name: str) -> None:
    if kind == "topics" and name:
        from kafka_compat.metadata.topic_names import check_topic_name

        try:
            check_topic_name(name)
        except KafkaError as error:
            reason = error.message.removeprefix("Topic name is invalid: ")
            text = f"Topic name is invalid: {reason}"
            raise Failure("org.apache.kafka.common.errors.InvalidTopicException", text) from None
    elif kind in ("brokers", "broker-loggers") and name and not is_number(name):
        raise illegal_argument(f"The entity name for {kind} must be a broker's ID, an integer, found: {name}")


def _ask(cluster: Any, kind: str, name: str, key: ApiKey, call: str, request: dict[str, Any]) -> Any:
    with in_background():
        if kind in ("brokers", "broker-loggers") and name:
            return cluster.ask_broker(int(name), key, call, **request)
        return cluster.ask(key, call, **request)


def alter_resource(cluster: Any, kind: str, name: str, added: dict[str, str], deleted: list[str]) -> None:
    """Run --alter. Raises Failure if a request fails."""
    from kafka_compat.protocol.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource

    if kind == "broker-loggers":
        known = {each.name for each in configs_of(cluster, kind, name)}
        missing = [each for each in (*deleted, *added) if each not in known]
        if missing:
            raise invalid_configuration(f"Invalid broker logger(s): {','.join(missing)}")
    changes = [AlterableConfig(name=key, config_operation=_SET, value=value) for key, value in added.items()]
    changes += [AlterableConfig(name=key, config_operation=_DELETE, value="") for key in deleted]
    resource = AlterConfigsResource(resource_type=_RESOURCES[kind], resource_name=name, configs=changes)
    key, call = ApiKey.INCREMENTAL_ALTER_CONFIGS, "incrementalAlterConfigs"
    (result,) = _ask(cluster, kind, name, key, call, {"resources": [resource]}).responses
    check(result)
