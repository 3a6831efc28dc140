"""Arguments of `kafka-compat pipeline` that decode record values with schemas from a registry."""

import argparse
from typing import Any

_FORMATS = ("avro", "protobuf", "json")


def add_decoding(parser: argparse.ArgumentParser) -> None:
    """Add --value-format, --value-schema, and the arguments of `add_registry`."""
    parser.add_argument(
        "--value-format",
        choices=_FORMATS,
        help="decode values to the columns decoded, schema_id and decode_error (default: do not decode)",
    )
    parser.add_argument(
        "--value-schema",
        metavar="SCHEMA",
        help="for json: columns of the values, as an SQL schema (default: the registry's JSON Schema)",
    )
    add_registry(parser)


def add_registry(parser: argparse.ArgumentParser) -> None:
    """Add --schema-registry, --schema-registry-config, --value-subject and --value-message."""
    parser.add_argument(
        "--schema-registry", metavar="URL", help="schema registry, such as http://127.0.0.1:8081"
    )
    parser.add_argument(
        "--schema-registry-config",
        metavar="FILE",
        help="properties file with basic.auth.user.info, bearer.auth.token or ssl.ca.location",
    )
    parser.add_argument(
        "--value-subject", metavar="NAME", help="subject with the schema of values (default: TOPIC-value)"
    )
    parser.add_argument(
        "--value-message", metavar="NAME", help="for protobuf: message of the file (default: the first)"
    )


def decode_settings(args: argparse.Namespace) -> Any:
    """Convert the arguments of `add_decoding` to DecodeSettings, or None without --value-format. Raises
    NotStarted if the arguments do not fit together.
    """
    from kafka_compat.pipelines.errors import NotStarted

    if args.value_schema is not None and args.value_format != "json":
        raise NotStarted("--value-schema is for --value-format json.")
    if args.value_format is None:
        if args.schema_registry is not None:
            raise NotStarted(
                "--schema-registry needs --value-format.", f"Expected one of {', '.join(_FORMATS)}."
            )
        return None
    return _settings(args, args.value_format, args.value_schema)


def windows_settings(args: argparse.Namespace) -> Any:
    """Convert the arguments of the job `windows` to DecodeSettings, or None if Spark itself parses values.
    Raises NotStarted if the arguments do not fit together.
    """
    from kafka_compat.pipelines.errors import NotStarted

    if args.format in ("avro", "protobuf") and args.schema is not None:
        raise NotStarted(f"--schema is not for --format {args.format}: the registry has the schema.")
    if args.format == "csv" and args.schema_registry is not None:
        raise NotStarted("--schema-registry is not for --format csv.", f"Expected {', '.join(_FORMATS)}.")
    if args.format in ("avro", "protobuf") or args.schema_registry is not None:
        return _settings(args, args.format, args.schema)
    if args.schema is None:
        raise NotStarted(
            "--schema is missing.",
            "Example: --schema 'carrier STRING, distance DOUBLE', or --schema-registry URL",
        )
    return None


def _settings(args: argparse.Namespace, value_format: str, schema: str | None) -> Any:
    from kafka_compat.pipelines.decode.decoding import DecodeSettings
    from kafka_compat.pipelines.errors import NotStarted

    if args.value_message is not None and value_format != "protobuf":
        raise NotStarted("--value-message is only for protobuf.")
    return DecodeSettings(value_format, _connection(args), args.value_subject, args.value_message, schema)


def _connection(args: argparse.Namespace) -> Any:
    from kafka_compat.client.connection_settings import WrongSettings, read_settings
    from kafka_compat.pipelines.decode.registry import Connection, authorization
    from kafka_compat.pipelines.errors import NotStarted

    if args.schema_registry is None:
        return None
    properties: dict[str, str] = {}
    if args.schema_registry_config is not None:
        try:
            properties = read_settings(args.schema_registry_config)
        except (OSError, WrongSettings) as error:
            reason = getattr(error, "strerror", None) or error
            raise NotStarted(
                f"--schema-registry-config {args.schema_registry_config} cannot be read: {reason}."
            ) from None
    try:
        headers = authorization(properties)
    except ValueError as error:
        raise NotStarted(f"--schema-registry-config {args.schema_registry_config}: {error}.") from None
    return Connection(args.schema_registry, headers, properties.get("ssl.ca.location"))
