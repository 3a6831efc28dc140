"""Schemas of a job's topics, on Spark's driver: look up the newest schemas, and add columns to DataFrames."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kafka_compat.decoding.plain import NotSo
from kafka_compat.pipelines.decode.columns import (
    DECODE_ERROR,
    DECODED,
    KINDS,
    SCHEMA_ID,
    ColumnSpec,
    add_columns,
)
from kafka_compat.pipelines.decode.json_values import type_of
from kafka_compat.pipelines.decode.registry import Connection, Registered, RegistryClient, RegistryFailed
from kafka_compat.pipelines.errors import JobFailed, NotStarted
from kafka_compat.pipelines.executors import send_code_to_executors

FIRST_PATIENCE_S: Final = 5.0
"""How long the first request waits for the registry, before Spark starts."""
_REFRESH_PATIENCE_S: Final = 2.0
_VERSIONS_MAX: Final = 50
"""Number of versions of a subject that are sent to executors. They request older ones from the registry."""
_SUBJECTS_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class DecodeSettings:
    """How values are decoded: the format (avro, protobuf or json), the registry, the subject with the schema
    (default: TOPIC-value), for Protobuf the message (default: the first), and for JSON without a registry an
    SQL schema.
    """

    format: str
    registry: Connection | None = None
    subject: str | None = None
    message: str | None = None
    schema: str | None = None


class Decoding:
    """The newest schemas of a job's topics.

    With `one_schema`, all topics must have the same subject. Without `all_registered`, the values of topics
    without a subject are not decoded, for jobs that select topics by a pattern.
    """

    def __init__(
        self, settings: DecodeSettings, *, one_schema: bool = False, all_registered: bool = True
    ) -> None:
        """Check the settings. Raises NotStarted if they are inconsistent."""
        if settings.registry is None and (settings.format != "json" or settings.schema is None):
            or_schema = " or --value-schema" if settings.format == "json" else ""
            raise NotStarted(
                f"--value-format {settings.format} needs --schema-registry{or_schema}.",
                "Example: --schema-registry http://127.0.0.1:8081",
            )
        self._settings = settings
        self._one_schema = one_schema
        self._all_registered = all_registered
        self._client: RegistryClient | None = None
        if settings.registry is not None:
            try:
                self._client = RegistryClient(settings.registry, FIRST_PATIENCE_S)
            except (ValueError, OSError) as error:
                raise NotStarted(
                    f"--schema-registry {settings.registry.url}: {error}.",
                    "Expected for example http://127.0.0.1:8081",
                ) from None
        self._specs: dict[str, ColumnSpec] = {}
        self._topic = ""

    def check(self, topics: Iterable[str]) -> None:
        """Look up the schemas before Spark starts. Raises NotStarted if the registry does not respond, or
        lacks the subject of a topic.
        """
        names = list(topics)
        self._topic = names[0]
        if self._one_schema and len(names) > 1 and self._settings.subject is None:
            raise NotStarted(
                f"The values of {len(names)} topics become one column, so they need one schema.",
                "Name its subject with --value-subject, or run the job once for each topic.",
            )
        if self._client is None:
            return
        try:
            for topic in names:
                spec = self.spec(topic)
                if spec.newest is None and self._all_registered:
                    raise NotStarted(f"{spec.missing[0].upper()}{spec.missing[1:]}.", self._subjects())
        except RegistryFailed as error:
            raise NotStarted(str(error), error.hint) from None

    def _subjects(self) -> str:
        assert self._client is not None
        subjects = self._client.subjects()
        shown = ", ".join(subjects[:_SUBJECTS_SHOWN]) + (", …" if len(subjects) > _SUBJECTS_SHOWN else "")
        return f"Name the subject with --value-subject. Subjects there: {shown or 'none'}."

    def spec(self, topic: str) -> ColumnSpec:
        """Return how to decode a topic's values, with the newest schema. If the registry does not respond,
        the last known schema is used. Raises RegistryFailed if none is known, and NotStarted if the schema
        cannot be used.
        """
        subject = self._settings.subject or f"{topic}-value"
        before = self._specs.get(subject)
        if self._client is None:
            found = ColumnSpec("json")
        else:
            found = self._looked_up(self._client, subject, before)
            self._specs[subject] = found
        if self._settings.format == "json" and (
            found.newest is not None or self._settings.schema is not None
        ):
            return replace(found, json_type=self._json_type(found.newest))
        return found

    def _looked_up(self, client: RegistryClient, subject: str, before: ColumnSpec | None) -> ColumnSpec:
        settings = self._settings
        client.patience_s = _REFRESH_PATIENCE_S if before else FIRST_PATIENCE_S
        try:
            # A schema never changes, so its ID is enough to see that there is no newer one.
            known_id = before.newest.schema_id if before is not None and before.newest is not None else None
            if before is not None and known_id is not None and client.newest_id(subject) in (known_id, None):
                return before
            newest = client.version(subject)
            if newest is None:
                missing = f"the schema registry at {client.url} has no subject {subject}"
                return ColumnSpec(settings.format, missing=missing, connection=client.connection)
            if newest.kind != KINDS[settings.format]:
                raise NotStarted(
                    f"The schema of {subject} is of type {newest.kind}, not {KINDS[settings.format]}.",
                    f"Use --value-format {newest.kind.lower()}.",
                )
            known = {
                **(before.known if before else self._versions(client, subject)),
                newest.schema_id: newest,
            }
            spec = ColumnSpec(settings.format, newest, "", settings.message, None, known, client.connection)
            if settings.format != "json":
                # Report a schema that cannot be used now, not from an executor.
                spec.values()
            return spec
        except NotSo as error:
            raise NotStarted(f"The schema of {subject} cannot be used: {error}.") from None
        except RegistryFailed:
            if before is None or before.newest is None:
                raise
            return before

    def _versions(self, client: RegistryClient, subject: str) -> dict[int, Registered]:
        """Return the subject's last schemas by ID, so that most executors need not ask the registry."""
        known: dict[int, Registered] = {}
        for version in client.versions(subject)[-_VERSIONS_MAX:]:
            try:
                found = client.version(subject, str(version))
            except NotSo:
                continue
            if found is not None:
                known[found.schema_id] = found
        return known

    def _json_type(self, newest: Registered | None) -> Any:
        """Return the Arrow type of JSON values: of --value-schema if given, otherwise of the JSON Schema."""
        if self._settings.schema is None:
            assert newest is not None
            return type_of(newest.text)
        from pyspark import SparkContext
        from pyspark.sql.pandas.types import to_arrow_type
        from pyspark.sql.types import StructType

        if SparkContext._active_spark_context is None:
            # Spark parses SQL schemas, and has not started yet.
            return type_of("{}")
        try:
            return to_arrow_type(StructType.fromDDL(self._settings.schema))
        except Exception as error:
            raise NotStarted(f"--value-schema {self._settings.schema}: {error}.") from None

    def fields(self) -> list[str] | None:
        """Return the names of the values' fields, for a job with one schema that was checked; None if the
        values are not records. Raises like `spec`.
        """
        import pyarrow as pa

        type_ = self.spec(self._topic).values().type
        return [field.name for field in type_] if pa.types.is_struct(type_) else None

    def added(self, rows: Any, names: tuple[str, str, str] = (DECODED, SCHEMA_ID, DECODE_ERROR)) -> Any:
        """Return a DataFrame with the columns of decoded values added, for a job with one schema. Raises
        JobFailed if the registry lacks the subject.
        """
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import IntegerType, StringType, StructField, StructType

        spec = self.spec(self._topic)
        if spec.newest is None and spec.json_type is None:
            raise JobFailed(f"{spec.missing[0].upper()}{spec.missing[1:]}.")
        send_code_to_executors()
        decoded, schema_id, error = names
        added = [
            StructField(decoded, from_arrow_type(spec.values().type)),
            StructField(schema_id, IntegerType()),
            StructField(error, StringType()),
        ]
        schema = StructType([*rows.schema.fields, *added])
        return rows.mapInArrow(partial(add_columns, spec=spec, names=names), schema)


def specs_of(decoding: Decoding | None, topics: Iterable[str]) -> Mapping[str, ColumnSpec] | None:
    """Return how to decode the values of each topic, or None if they stay as they are. Raises
    RegistryFailed.
    """
    if decoding is None:
        return None
    return {topic: decoding.spec(topic) for topic in topics}
