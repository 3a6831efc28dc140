"""Add the columns `decoded`, `schema_id` and `decode_error` to Arrow batches of records, on executors.

Executors need pyarrow and fastavro or protobuf, but not this package.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kafka_compat.decoding.plain import NotSo
from kafka_compat.decoding.wire_format import framed
from kafka_compat.pipelines.decode.avro_values import AvroValues, Decode
from kafka_compat.pipelines.decode.json_values import JsonValues
from kafka_compat.pipelines.decode.protobuf_values import ProtobufValues
from kafka_compat.pipelines.decode.registry import (
    AVRO,
    JSON,
    PROTOBUF,
    Connection,
    Registered,
    RegistryClient,
)

DECODED, SCHEMA_ID, DECODE_ERROR = "decoded", "schema_id", "decode_error"
KINDS: Final = {"avro": AVRO, "protobuf": PROTOBUF, "json": JSON}
"""The registry's name for each value of --value-format."""
_UNKNOWN_MAX: Final = 1000
_ERROR_CHARACTERS_MAX: Final = 500


@dataclass(frozen=True)
class ColumnSpec:
    """What an executor needs to decode the values of a topic. It can be pickled.

    `newest` is the schema that defines the column; None if the registry does not have the subject, for the
    reason `missing`. `json_type` is the Arrow type of JSON values. `known` contains the schemas that need not
    be requested from the registry.
    """

    format: str
    newest: Registered | None = None
    missing: str = ""
    message: str | None = None
    json_type: Any = None
    known: Mapping[int, Registered] = field(default_factory=dict)
    connection: Connection | None = None

    def values(self) -> "AvroValues | ProtobufValues | JsonValues":
        """Return the column's type and decoders. Raises NotSo if the newest schema is invalid."""
        if self.format == "json":
            return JsonValues(self.json_type)
        assert self.newest is not None
        if self.format == "avro":
            return AvroValues(self.newest.text, [text for _, text in self.newest.references])
        return ProtobufValues(self.newest.text, dict(self.newest.references), self.message)


class ValueDecoder:
    """Decodes arrays of values, with a cache of schemas."""

    def __init__(self, spec: ColumnSpec) -> None:
        self._spec = spec
        self._values = None if spec.newest is None and spec.json_type is None else spec.values()
        self._client: RegistryClient | None = None
        self._decoders: dict[int, Decode | str] = {}
        self._unknown = 0

    def with_columns(
        self, batch: Any, names: tuple[str, str, str] = (DECODED, SCHEMA_ID, DECODE_ERROR)
    ) -> Any:
        """Return a record batch with three columns added; the decoded column is missing if the registry does
        not have the subject. Raises RegistryFailed if the registry does not respond.
        """
        import pyarrow as pa

        decoded: list[Any] = []
        ids: list[int | None] = []
        errors: list[str | None] = []
        for content in batch.column("value").to_pylist():
            value, schema_id, error = self._decode(content)
            decoded.append(value)
            ids.append(schema_id)
            errors.append(error)
        columns, named = list(batch.columns), list(batch.schema.names)
        if self._values is not None:
            columns.append(self._array(decoded, errors))
            named.append(names[0])
        columns += [pa.array(ids, pa.int32()), pa.array(errors, pa.string())]
        return pa.RecordBatch.from_arrays(columns, [*named, *names[1:]])

    def _array(self, decoded: list[Any], errors: list[str | None]) -> Any:
        """Convert the values. A value that does not fit the type, such as a number that is too large, becomes
        null, with an error.
        """
        import pyarrow as pa

        assert self._values is not None
        type_ = self._values.type
        try:
            return pa.array(decoded, type_)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            for index, value in enumerate(decoded):
                try:
                    pa.array([value], type_)
                except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
                    decoded[index], errors[index] = None, _short(f"does not fit {type_}: {error}")
            return pa.array(decoded, type_)

    def _decode(self, content: bytes | None) -> tuple[Any, int | None, str | None]:
        """Return the value, its schema's ID, and the reason if it cannot be decoded."""
        if content is None:
            return None, None, None
        start = framed(content)
        try:
            if self._values is None:
                return None, None if start is None else start.schema_id, self._spec.missing
            if start is None:
                if isinstance(self._values, JsonValues):
                    return self._values.decode(content), None, None
                return None, None, "does not begin with 0 and a schema ID"
            decode = self._decoder(start.schema_id)
            if isinstance(decode, str):
                return None, start.schema_id, decode
            return decode(start.content), start.schema_id, None
        except NotSo as error:
            return None, None if start is None else start.schema_id, _short(str(error))

    def _decoder(self, schema_id: int) -> Decode | str:
        found = self._decoders.get(schema_id)
        if found is None:
            found = self._new_decoder(schema_id)
            if isinstance(found, str):
                self._unknown += 1
                if self._unknown > _UNKNOWN_MAX:
                    return found
            self._decoders[schema_id] = found
        return found

    def _new_decoder(self, schema_id: int) -> Decode | str:
        """Return the decoder for a schema, or the reason why there is none. Raises RegistryFailed."""
        assert self._values is not None
        if isinstance(self._values, JsonValues):
            return self._values.decode
        try:
            schema = self._spec.known.get(schema_id) or self._fetched(schema_id)
            wanted = KINDS[self._spec.format]
            if schema.kind != wanted:
                return f"schema {schema_id} is of type {schema.kind}, not {wanted}"
            references = schema.references
            if isinstance(self._values, AvroValues):
                return self._values.decoder(schema.text, [text for _, text in references])
            return self._values.decoder(schema.text, dict(references))
        except NotSo as error:
            return _short(f"schema {schema_id}: {error}")

    def _fetched(self, schema_id: int) -> Registered:
        if self._unknown >= _UNKNOWN_MAX:
            # Values that are not of this format may have any number of IDs.
            raise NotSo("it was not fetched, because too many IDs are unknown")
        assert self._spec.connection is not None
        if self._client is None:
            self._client = RegistryClient(self._spec.connection)
        found = self._client.schema(schema_id)
        if found is None:
            raise NotSo("the registry does not have it")
        return found


def add_columns(batches: Iterator[Any], spec: ColumnSpec, names: tuple[str, str, str]) -> Iterator[Any]:
    """Add the columns to all batches. For DataFrame.mapInArrow."""
    decoder = ValueDecoder(spec)
    for batch in batches:
        yield decoder.with_columns(batch, names)


def by_topic(specs: Mapping[str, ColumnSpec], *, wide_numbers: bool = False) -> Callable[[str, Any], Any]:
    """Return a function that adds the columns to batches of one topic's records. With `wide_numbers`, decoded
    integers are long and decoded floats are double.
    """
    decoders: dict[str, ValueDecoder] = {}

    def added(topic: str, batch: Any) -> Any:
        if topic not in decoders:
            decoders[topic] = ValueDecoder(specs[topic])
        batch = decoders[topic].with_columns(batch)
        return _with_wide_numbers(batch) if wide_numbers else batch

    return added


def _with_wide_numbers(batch: Any) -> Any:
    if DECODED not in batch.schema.names:
        return batch
    place = batch.schema.get_field_index(DECODED)
    decoded = batch.column(place)
    return batch.set_column(place, DECODED, decoded.cast(_wide(decoded.type)))


def _wide(kind: Any) -> Any:
    """Return an Arrow type with long and double in place of the smaller numbers, also in nested types."""
    import pyarrow as pa

    t = pa.types
    if t.is_struct(kind):
        return pa.struct([kind.field(i).with_type(_wide(kind.field(i).type)) for i in range(kind.num_fields)])
    if t.is_map(kind):
        return pa.map_(_wide(kind.key_type), _wide(kind.item_type))
    if t.is_list(kind):
        return pa.list_(kind.value_field.with_type(_wide(kind.value_type)))
    if t.is_int8(kind) or t.is_int16(kind) or t.is_int32(kind):
        return pa.int64()
    return pa.float64() if t.is_float32(kind) else kind


def _short(text: str) -> str:
    return text if len(text) <= _ERROR_CHARACTERS_MAX else f"{text[:_ERROR_CHARACTERS_MAX]}…"
