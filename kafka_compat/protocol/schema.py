"""Definition of messages by classes that serve as schema, type and documentation.

    @struct
    class TopicData:
        name: String = field("0-12", default="")
        partitions: list[Int32] = []

    @request(ApiKey.X, versions="0-13", flexible="9+")
    class XRequest:
        topics: list[TopicData] | None = field(nullable="1+", default=[])

Names, order, versions, nullability, tags and defaults are the same as in Kafka's message definitions, with
field names in snake_case. `flexible` states the versions with compact lengths and tagged fields (KIP-482).
The decorators turn the class into a slotted class with a keyword-only constructor in which every field has a
default. On the path of a record, fields are assigned instead, because Python passes arguments by name slowly.
Nothing is compiled here: see `kafka_compat.protocol.codec`.
"""

import operator
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, cast, dataclass_transform, overload

from kafka_compat.protocol.buffers import Records
from kafka_compat.protocol.versions import Versions, parse_versions

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.protocol.api_keys import ApiKey

T = TypeVar("T")


class Wire(NamedTuple):
    """A primitive wire type: Kafka's name for the type, and its struct format if it has a fixed size."""

    name: str
    code: str = ""


class ArrayOf(NamedTuple):
    """An array whose elements all have the same type."""

    element: "WireType"


Bool = Annotated[bool, Wire("bool", "?")]
Int8 = Annotated[int, Wire("int8", "b")]
Int16 = Annotated[int, Wire("int16", "h")]
UInt16 = Annotated[int, Wire("uint16", "H")]
Int32 = Annotated[int, Wire("int32", "i")]
UInt32 = Annotated[int, Wire("uint32", "I")]
Int64 = Annotated[int, Wire("int64", "q")]
Float64 = Annotated[float, Wire("float64", "d")]
Uuid = Annotated["UUID", Wire("uuid", "16s")]
String = Annotated[str, Wire("string")]
NullableString = Annotated[str | None, Wire("string")]
Bytes = Annotated[bytes, Wire("bytes")]
NullableBytes = Annotated[bytes | None, Wire("bytes")]
NullableRecords = Annotated[Records | None, Wire("records")]

_NULLABLE = (NullableString, NullableBytes, NullableRecords)


class FieldSpec(NamedTuple):
    """A field of a message class, as used by the codec.

    `nullable` is empty if the field is never null, and `tag` is None unless the field is tagged. A default
    that is a list stands for a new empty list; `factory` creates the default of a struct field.
    """

    name: str
    type: "WireType"
    versions: Versions
    nullable: Versions
    tag: int | None
    default: Any
    factory: Callable[[], Any] | None


class Schema:
    """The parameters of a message's decorator. `api_key` is None for versioned records."""

    def __init__(self, kind: str, api_key: int | None, versions: Versions, flexible: Versions) -> None:
        self.kind = kind
        self.api_key = api_key
        self.versions = versions
        self.flexible = flexible


class _Field(tuple[Any, ...]):
    """The versions, nullable versions, tag, default and factory of a field."""


@overload
def field(versions: str = ..., *, default: T, nullable: str = ..., tag: int | None = ...) -> T: ...


@overload
def field(
    versions: str = ..., *, default_factory: Callable[[], T], nullable: str = ..., tag: int | None = ...
) -> T: ...


def field(
    versions: str = "0+",
    *,
    default: Any = None,
    default_factory: Callable[[], Any] | None = None,
    nullable: str = "",
    tag: int | None = None,
) -> Any:
    """Declare a field with properties beyond its type and default.

    `versions` are the versions that have the field; `nullable` are the versions in which it may be null (by
    default all, if its type permits None). `tag` makes it a tagged field, which is sent only if its value
    differs from the default.
    """
    return _Field((versions, nullable, tag, default, default_factory))


class Message:
    """Base class of all messages. Messages are compared and printed by value."""

    __slots__: tuple[str, ...] = ()
    __fields__: tuple[FieldSpec, ...] = ()

    def __init__(self, **values: Any) -> None:
        constructor = _compile_constructor(type(self))
        type.__setattr__(type(self), "__init__", constructor)
        constructor(self, **values)

    def __eq__(self, other: object) -> bool:
        return same(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return represent(self)


def same(message: Any, other: Any) -> bool:
    """Return whether two objects are messages of the same class with equal fields."""
    if getattr(type(other), "__fields__", ()) is not message.__fields__:
        return False
    return all(getattr(message, spec.name) == getattr(other, spec.name) for spec in message.__fields__)


def represent(message: Any) -> str:
    """Return a message's class and fields as text."""
    values = ", ".join(f"{spec.name}={getattr(message, spec.name)!r}" for spec in message.__fields__)
    return f"{type(message).__name__}({values})"


def allocator(cls: type) -> Callable[[Any], Any]:
    """Return a function that creates a message of a class, without initializing its fields if possible."""
    return object.__new__ if issubclass(cls, Message) else operator.call


WireType = Wire | ArrayOf | type[Message]


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def struct(cls: type[T]) -> type[T]:
    """Define a class as a struct nested in messages."""
    return _slotted(cls, {})


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def request(api_key: "ApiKey", *, versions: str, flexible: str) -> Callable[[type[T]], type[T]]:
    """Define a class as the body of a request. `versions` may exceed the versions that the broker serves."""
    return _message(Schema("request", int(api_key), parse_versions(versions), parse_versions(flexible)))


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def response(api_key: "ApiKey", *, versions: str, flexible: str) -> Callable[[type[T]], type[T]]:
    """Define a class as the body of a response."""
    return _message(Schema("response", int(api_key), parse_versions(versions), parse_versions(flexible)))


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def data(*, versions: str, flexible: str = "none") -> Callable[[type[T]], type[T]]:
    """Define a class for versioned data outside requests, such as the values in `__consumer_offsets`."""
    return _message(Schema("data", None, parse_versions(versions), parse_versions(flexible)))


def fields_of(cls: type) -> tuple[FieldSpec, ...]:
    """Return the fields of a message or struct class, in wire order."""
    return cast(type[Message], cls).__fields__


def schema_of(cls: type) -> Schema:
    found: Schema = cls.__dict__["__schema__"]
    return found


def _message(schema: Schema) -> Callable[[type[T]], type[T]]:
    # The codec fills both tables when a version is first used. They map a version to its fastest codec, and
    # ~version to its interruptible codec, which is used for long messages in another thread.
    return lambda cls: _slotted(cls, {"__schema__": schema, "__decoders__": {}, "__encoders__": {}})


def _slotted(cls: type[T], extra: dict[str, object]) -> type[T]:
    specs = tuple(
        _field_spec(name, annotation, cls.__dict__.get(name))
        for name, annotation in cls.__annotations__.items()
    )
    names = tuple(spec.name for spec in specs)
    dropped = {*names, "__dict__", "__weakref__"}
    body = {name: value for name, value in cls.__dict__.items() if name not in dropped}
    body |= {"__slots__": names, "__fields__": specs, **extra}
    return cast(type[T], type(cls.__name__, (Message,), body))


def _field_spec(name: str, annotation: Any, declared: Any) -> FieldSpec:
    if not isinstance(declared, _Field):
        declared = ("0+", "", None, declared, None)
    versions, nullable, tag, default, factory = declared
    wire_type, admits_none = _wire_type(annotation)
    if not nullable:
        nullable = "0+" if admits_none else "none"
    if factory is not None and tag is not None:
        default = frozen_default(factory)
        factory = None
    return FieldSpec(
        name, wire_type, parse_versions(versions), parse_versions(nullable), tag, default, factory
    )


def _wire_type(annotation: Any) -> tuple[WireType, bool]:
    """Return the wire type of an annotation, and whether the annotation permits None."""
    metadata = getattr(annotation, "__metadata__", None)
    if metadata is not None:
        return metadata[0], annotation in _NULLABLE
    if isinstance(annotation, type) and issubclass(annotation, Message):
        return annotation, False
    if isinstance(annotation, types.UnionType):
        (inner,) = (part for part in annotation.__args__ if part is not types.NoneType)
        return _wire_type(inner)[0], True
    if getattr(annotation, "__origin__", None) is list:
        return ArrayOf(_wire_type(annotation.__args__[0])[0]), False
    raise TypeError(f"{annotation!r} is not a wire type")


def frozen_default(factory: Callable[[], T]) -> T:
    """Return a default value for a tagged struct, shared by all messages. Changing it raises TypeError.

    A fetched partition has three such fields, which are nearly always absent. Sharing saves three objects for
    each.
    """
    value = factory()
    cls = cast(type[Message], type(value))

    def refuse(self: Message, name: str, value: object) -> None:
        raise TypeError(f"this {cls.__name__} is a shared default: assign a new {cls.__name__} instead")

    frozen = type(cls.__name__, (cls,), {"__slots__": (), "__setattr__": refuse})
    shared: Any = object.__new__(frozen)
    for spec in cls.__fields__:
        object.__setattr__(shared, spec.name, getattr(value, spec.name))
    return cast(T, shared)


def _compile_constructor(cls: type[Message]) -> Callable[..., None]:
    """Create a class's keyword-only `__init__` at its first call: most classes are never instantiated."""
    names: dict[str, Any] = {"ABSENT": object()}
    parameters, body = [], []
    for spec in cls.__fields__:
        if isinstance(spec.default, list) or spec.factory is not None:
            parameters.append(f"{spec.name}=ABSENT")
            new = "[]"
            if spec.factory is not None:
                new = f"new_{spec.name}()"
                names[f"new_{spec.name}"] = spec.factory
            body.append(f"    self.{spec.name} = {new} if {spec.name} is ABSENT else {spec.name}")
        else:
            names[f"default_{spec.name}"] = spec.default
            parameters.append(f"{spec.name}=default_{spec.name}")
            body.append(f"    self.{spec.name} = {spec.name}")
    # Do not declare the parameters as keyword-only, because Python then looks up each default by its name.
    source = f"def __init__({', '.join(['self', *parameters])}):\n" + "\n".join(body or ["    pass"])
    exec(source, names)
    return cast(Callable[..., None], names["__init__"])
