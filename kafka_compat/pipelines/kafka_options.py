"""Convert `--kafka-option k=v` to options for Spark's Kafka source, and to properties for Kafka clients.

Jobs read with Kafka's Java client and write with librdkafka, which may use different names for a setting.
"""

from collections.abc import Iterable, Mapping

from kafka_compat.pipelines.errors import NotStarted
from kafka_compat.security import jaas

SOURCE_OPTIONS = {
    option.lower(): option
    for option in (
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
        "groupIdPrefix",
        "kafkaConsumer.pollTimeoutMs",
        "maxOffsetsPerTrigger",
        "maxRecordsPerPartition",
        "maxTriggerDelay",
        "minOffsetsPerTrigger",
        "minPartitions",
        "startingOffsets",
        "startingOffsetsByTimestamp",
        "startingOffsetsByTimestampStrategy",
        "startingTimestamp",
        "useDeprecatedOffsetFetching",
    )
}
"""Options of the source, by lower-case name. All others are consumer properties with the prefix `kafka.`."""

_OWNED = {
    "assign",
    "failondataloss",
    "includeheaders",
    "kafka.bootstrap.servers",
    "subscribe",
    "subscribepattern",
}


def source_options(pairs: Iterable[str]) -> dict[str, str]:
    """Parse `name=value` strings. Raises NotStarted if a string is malformed or sets an option of the job."""
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise NotStarted(f"--kafka-option {pair}: expected name=value.")
        if name.lower() in SOURCE_OPTIONS:
            name = SOURCE_OPTIONS[name.lower()]
        elif not name.lower().startswith("kafka.") and name.lower() not in _OWNED:
            name = f"kafka.{name}"
        if name.lower() in _OWNED:
            raise NotStarted(f"--kafka-option {pair}: the job sets {name} itself.")
        options[name] = value
    return options


def client_properties(options: dict[str, str]) -> dict[str, str]:
    """Return the options that begin with `kafka.`, without this prefix, for Kafka's Java client."""
    return {
        name.removeprefix("kafka."): value for name, value in options.items() if name.startswith("kafka.")
    }


def named_values(pairs: Iterable[str]) -> dict[str, str]:
    """Parse `name=value` strings without changing the names. Raises NotStarted if a string is malformed."""
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise NotStarted(f"{pair}: expected name=value.")
        values[name] = value
    return values


_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_OF_JAVA_ALONE = ("ssl.truststore.", "ssl.keystore.type", "sasl.jaas.config")


def producer_properties(pairs: Mapping[str, str]) -> dict[str, str]:
    """Convert the connection and authentication properties of Kafka's Java client to librdkafka's."""
    result = {
        name: value
        for name, value in pairs.items()
        if name in ("bootstrap.servers", "client.id")
        or (name.startswith(("ssl.", "sasl.", "security.")) and not name.startswith(_OF_JAVA_ALONE))
    }
    if "ssl.truststore.location" in pairs:
        result["ssl.ca.location"] = pairs["ssl.truststore.location"]
    if "ssl.truststore.certificates" in pairs:
        result["ssl.ca.pem"] = pairs["ssl.truststore.certificates"]
    if pairs.get("ssl.keystore.type", "").upper() == "PEM" and "ssl.keystore.location" in result:
        # Use the file for both settings: Java's PEM file contains the key and its certificates.
        file = result.pop("ssl.keystore.location")
        result |= {"ssl.certificate.location": file, "ssl.key.location": file}
    try:
        login = jaas.parse(pairs.get("sasl.jaas.config", "")).options
    except ValueError:
        login = {}
    for ours, theirs in (("sasl.username", "username"), ("sasl.password", "password")):
        if theirs in login:
            result[ours] = login[theirs]
    return result


def java_names(properties: Mapping[str, str]) -> dict[str, str] | None:
    """Convert librdkafka's connection and authentication properties to the Java client's. Return None if a
    property has no equivalent.
    """
    protocol = properties.get("security.protocol", "plaintext").upper()
    result = {
        name: properties[name]
        for name in ("bootstrap.servers", "client.id", "ssl.key.password")
        if name in properties
    }
    result["security.protocol"] = protocol
    if protocol.endswith("SSL") and not _tls_as_java(properties, result):
        return None
    if protocol.startswith("SASL"):
        mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms", ""))
        if mechanism not in _MODULES:
            return None
        name, password = (
            properties.get(key, "").replace("\\", "\\\\").replace('"', '\\"')
            for key in ("sasl.username", "sasl.password")
        )
        result["sasl.mechanism"] = mechanism
        result["sasl.jaas.config"] = (
            f'{_MODULES[mechanism]} required username="{name}" password="{password}";'
        )
    return result


def _tls_as_java(properties: Mapping[str, str], result: dict[str, str]) -> bool:
    if properties.get("enable.ssl.certificate.verification", "true").lower() == "false":
        return False
    if properties.get("ssl.endpoint.identification.algorithm", "https").lower() == "none":
        result["ssl.endpoint.identification.algorithm"] = ""
    if "ssl.ca.location" in properties:
        result |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": properties["ssl.ca.location"]}
    elif "ssl.ca.pem" in properties:
        result |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": properties["ssl.ca.pem"]}
    if "ssl.keystore.location" in properties:
        own = {"location": properties["ssl.keystore.location"], "type": "PKCS12"}
        own["password"] = properties.get("ssl.keystore.password", "")
        result |= {f"ssl.keystore.{name}": value for name, value in own.items()}
        return True
    parts = {"ssl.certificate": "certificate.chain", "ssl.key": "key"}
    for ours, theirs in parts.items():
        text = properties.get(f"{ours}.pem")
        if text is None and f"{ours}.location" in properties:
            text = _text_of(properties[f"{ours}.location"])
            if text is None:
                return False
        if text is not None:
            result |= {"ssl.keystore.type": "PEM", f"ssl.keystore.{theirs}": text}
    return True


def _text_of(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None
