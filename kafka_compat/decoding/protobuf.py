"""Decode Protobuf values with the official package. No I/O, except to import the package."""

import base64
import binascii
import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafka_compat.decoding.plain import NotSo
from kafka_compat.decoding.wire_format import message_indexes

_NAME: Final = "kafka_compat/the_schema.proto"
_OWN: Final = "google/protobuf/"
"""Directory of the files that are part of Protobuf itself, which registries do not have."""


class ProtobufSchema:
    """A Protobuf schema that decodes the values written with it."""

    kind = "protobuf"

    def __init__(self, serialized: str, references: Mapping[str, str] | None = None) -> None:
        """Parse a base64-encoded FileDescriptorProto. `references` maps import names to imported files,
        dependencies first. Raises NotSo if a file is invalid.
        """
        try:
            from google.protobuf import descriptor_pb2, descriptor_pool
        except ImportError:
            raise NotSo("Protobuf requires the package protobuf: install kafka-compat[schemas]") from None
        self._pool = descriptor_pool.DescriptorPool()
        self._own: set[str] = set()
        try:
            for name, content in (*(references or {}).items(), (_NAME, serialized)):
                file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(content, validate=True))
                file.name = name
                for imported in file.dependency:
                    self._add_own(imported)
                self._pool.Add(file)
            self._file = self._pool.FindFileByName(_NAME)
            # Keep the names in the order of the file, because descriptors do not preserve this order.
            self._messages = [each.name for each in file.message_type]
        except (binascii.Error, UnicodeError):
            raise NotSo("the registry does not return it as a serialized descriptor") from None
        except Exception as error:
            raise NotSo(f"not a Protobuf file: {type(error).__name__}: {error}") from None

    def _add_own(self, name: str) -> None:
        if not name.startswith(_OWN) or name in self._own:
            return
        from google.protobuf import descriptor_pb2

        stem = name.removeprefix(_OWN).removesuffix(".proto")
        if not stem.isidentifier():
            return
        module = importlib.import_module(f"google.protobuf.{stem}_pb2")
        file = descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
        self._own.add(name)
        for imported in file.dependency:
            self._add_own(imported)
        self._pool.Add(file)

    def read(self, content: bytes) -> str:
        """Decode a value to Protobuf's JSON, with the schema's field names. Raises NotSo if it is invalid."""
        from google.protobuf import json_format, message_factory, text_format

        indexes, content = message_indexes(content)
        described = self.message_at(indexes)
        try:
            message = message_factory.GetMessageClass(described).FromString(content)
        except Exception as error:
            raise NotSo(f"no {described.full_name}: {type(error).__name__}: {error}") from None
        try:
            shown: str = json_format.MessageToJson(
                message, preserving_proto_field_name=True, ensure_ascii=False, descriptor_pool=self._pool
            )
        except Exception:
            # Show the text format, because some values, such as an Any of an unknown type, have no JSON form.
            shown = text_format.MessageToString(message, as_utf8=True)
        return shown

    def message_at(self, indexes: Sequence[int]) -> Any:
        """Return the descriptor of the message at an index path. Raises NotSo if there is none."""
        first, *rest = indexes
        try:
            if first < 0:
                raise IndexError
            found = self._file.message_types_by_name[self._messages[first]]
            for index in rest:
                if index < 0:
                    raise IndexError
                found = found.nested_types[index]
        except IndexError:
            raise NotSo(f"its Protobuf file has no message {'.'.join(map(str, indexes))}") from None
        return found

    def message_named(self, name: str | None) -> Any:
        """Return the descriptor of the message with a full or short name, by default the first message of the
        file. Raises NotSo if there is none.
        """
        if name is None:
            return self.message_at([0])
        for full_name in (name, f"{self._file.package}.{name}"):
            try:
                return self._pool.FindMessageTypeByName(full_name)
            except KeyError:
                continue
        names = ", ".join(self._file.message_types_by_name)
        raise NotSo(f"its Protobuf file has no message {name}; its messages are {names}")
