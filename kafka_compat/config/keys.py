"""Definition of one setting: its name, type, default and rule, and the parsing of its values.

Types, bounds and error messages are the same as in Kafka's `ConfigDef`, because clients and Kafka's tools
display them.
"""

import builtins
import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple, cast

from kafka_compat.config.broker_table import BROKER_TABLE, DYNAMIC_ONLY_TABLE
from kafka_compat.config.topic_table import TOPIC_TABLE

Value = bool | int | float | str | list[str] | None

_INTEGER_BITS = {"short": 16, "int": 32, "long": 64}
_VERSION = r"0\.(8\.[012]|9\.0|1[01]\.\d)(\.\d+)?(-IV\d)?|[1234]\.\d+(\.\d+)?(-IV\d)?"
_JAVA_INTEGER = re.compile(r"[+-]?\d+")
_THROTTLED = r"\*|\d+:\d+(,\d+:\d+)*"


class ConfigError(Exception):
    """Raised for an invalid value of a setting.

    `str()` is Kafka's message with the setting, the value and the reason. `expected` describes a valid value.
    """

    def __init__(
        self, name: str, value: str | None, reason: str, expected: str = "", *, whole: bool = False
    ) -> None:
        """If `whole` is true, the reason is a complete sentence and becomes the message."""
        super().__init__(reason if whole else f"Invalid value {value} for configuration {name}: {reason}")
        self.name = name
        self.value = value
        self.reason = reason
        self.expected = expected

    @property
    def in_full(self) -> str:
        """The error message, with the description of a valid value."""
        return str(self) + (f" ({self.expected})" if self.expected else "")


class ConfigKey(NamedTuple):
    """The definition of a setting: the columns of broker_table.py, except for the documentation."""

    name: str
    type: str
    default: str | None
    importance: str
    update: str
    effect: str = "works"
    rule: str = ""

    @property
    def has_effect(self) -> bool:
        """Whether this broker applies the setting, or does not need it."""
        return self.effect != "stored"

    @property
    def sensitive(self) -> bool:
        """Whether the value must not be shown or logged."""
        return self.type == "password"

    @property
    def read_only(self) -> bool:
        """Whether a change of the setting requires a restart."""
        return self.update in ("read-only", "internal")

    @property
    def expected(self) -> str:
        """A description of valid values."""
        kind = {
            "boolean": "true or false",
            "short": "a whole number",
            "int": "a whole number",
            "long": "a whole number",
            "double": "a number",
            "list": "a comma-separated list",
        }.get(self.type, "text")
        head, _, tail = self.rule.partition(":")
        if head in ("one-of", "any-case"):
            names = tail.replace(",", ", ")
            kind = f"a list of {names}" if self.type == "list" else f"one of {names}"
        elif "..." in self.rule:
            special, low, high = _bounds(self.rule)
            kind += f" from {low} to {high}" if high else f" of at least {low}"
            kind += f", or {special}" if special else ""
        elif self.rule == "version":
            kind = "a version such as 3.9-IV0"
        elif self.rule == "auto-offset-reset":
            kind = "earliest, latest, or by_duration:PnDTnHnMn.nS"
        elif self.rule == "log-levels":
            kind = "levels such as INFO,kafka_compat.cluster=DEBUG"
        return f"expected {kind}" + (f", for example {self.default}" if self.default else "")

    def parse(self, text: str) -> Value:
        """Parse `text`, and check the value against the rule. Raises ConfigError if it is invalid."""
        if "\0" in text:
            raise self.refuse(text.replace("\0", "\\0"), "A value cannot contain the null character")
        value = self._convert(text.strip())
        if self.rule:
            self._check(value, text)
        return value

    def show(self, value: Value) -> str | None:
        """Format a value as in Kafka's DescribeConfigs responses."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, list):
            return ",".join(value)
        return _java_double(value) if isinstance(value, float) else str(value)

    def refuse(self, text: str | None, reason: str) -> ConfigError:
        """Return a ConfigError for an invalid value. The message omits the value of a sensitive setting."""
        return ConfigError(self.name, "[hidden]" if self.sensitive else text, reason, self.expected)

    def _convert(self, text: str) -> Value:
        match self.type:
            case "boolean":
                if text.lower() not in ("true", "false"):
                    raise self.refuse(text, "Expected value to be either true or false")
                return text.lower() == "true"
            case "short" | "int" | "long":
                bits = _INTEGER_BITS[self.type]
                if not _JAVA_INTEGER.fullmatch(text) or not -(1 << bits - 1) <= int(text) < 1 << bits - 1:
                    raise self.refuse(text, f"Not a number of type {self.type.upper()}")
                return int(text)
            case "double":
                try:
                    return float(text)
                except ValueError:
                    raise self.refuse(text, "Not a number of type DOUBLE") from None
            case "list":
                return re.split(r"\s*,\s*", text) if text else []
            case _:
                return text

    def _check(self, value: Value, text: str) -> None:
        head, _, tail = self.rule.partition(":")
        if head == "one-of":
            allowed = tail.split(",")
            for item in value if isinstance(value, list) else [value]:
                if item not in allowed:
                    raise self.refuse(str(item), f"String must be one of: {', '.join(allowed)}")
        elif head == "any-case":
            if str(value).upper() not in tail.split(","):
                raise self.refuse(
                    text, f"String must be one of (case insensitive): {tail.replace(',', ', ')}"
                )
        elif head == "version":
            if not re.fullmatch(_VERSION, str(value)):
                raise self.refuse(text, f"Version {value} is not a valid version")
        elif head == "auto-offset-reset":
            from kafka_compat.config.auto_offset_reset import parse_reset

            try:
                parse_reset(str(value))
            except ValueError:
                raise self.refuse(
                    str(value),
                    f"Invalid value `{value}` for configuration {self.name}. The value must be either "
                    "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
                ) from None
        elif head == "non-empty":
            if not value:
                raise self.refuse(text, "String must be non-empty")
        elif head == "log-levels":
            from kafka_compat.config.logger_levels import parse_levels

            try:
                parse_levels(text)
            except ValueError as error:
                raise self.refuse(text, str(error)) from error
        elif head == "throttled-replicas":
            joined = ",".join(value) if isinstance(value, list) else ""
            if joined and not re.fullmatch(_THROTTLED, joined):
                raise self.refuse(
                    f"[{joined.replace(',', ', ')}]",
                    f"{self.name} must be the literal '*' or a list of replicas in the following format: "
                    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
                )
        elif isinstance(value, (int, float)):
            self._check_bounds(value)

    def _check_bounds(self, value: int | float) -> None:
        special, low, high = _bounds(self.rule)
        if special:
            if value != float(special) and not (float(low) <= value and (not high or value <= float(high))):
                raise self.refuse(
                    self.show(value), f"Value must be between {low} and {high} or equal to {special}"
                )
        elif low and value < float(low):
            raise self.refuse(self.show(value), f"Value must be at least {low}")
        elif high and value > float(high):
            raise self.refuse(self.show(value), f"Value must be no more than {high}")


def _bounds(rule: str) -> tuple[str, str, str]:
    """Parse `-1|[1,...,9]` into ("-1", "1", "9"). A missing bound is empty."""
    special, _, span = rule.rpartition("|")
    low, _, high = span.strip("[]").partition("...")
    return special, low.strip(","), high.strip(",")


def _java_double(value: float) -> str:
    """Format a double like Java's Double.toString: 0.5, 1.0E7, 1.7976931348623157E308."""
    from decimal import Decimal  # Import Decimal here, because it is rarely needed and slow to import.

    if value == 0 or value != value or 1e-3 <= abs(value) < 1e7:
        return repr(value) if value == value else "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    tail = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{tail}E{int(exponent) + len(digits) - 1}"


def keys_of_table(table: str, update: str | None = None) -> dict[str, ConfigKey]:
    """Return the settings of a table by name. `update` replaces the column for the update mode."""
    keys = {}
    for line in table.split("\n"):
        if line:
            name, type_, default, *rest = line.partition(" # ")[0].split(" ")
            importance = rest.pop(0)
            keys[name] = ConfigKey(
                name,
                type_,
                None if default == "null" else "" if default == '""' else default,
                importance,
                update or rest.pop(0),
                rest.pop(0),
                rest[0] if rest else "",
            )
    return keys


@cache
def broker_keys() -> dict[str, ConfigKey]:
    """Return all broker settings by name: Kafka's, followed by this project's (own_settings.py)."""
    from kafka_compat.config.own_settings import OWN_DEFAULTS, OWN_TABLE

    keys = keys_of_table(BROKER_TABLE)
    for name, default in OWN_DEFAULTS.items():
        keys[name] = keys[name]._replace(default=default)
    keys.update(keys_of_table(OWN_TABLE))
    return keys


@cache
def dynamic_only_keys() -> dict[str, ConfigKey]:
    """Return the settings that Kafka accepts only in AlterConfigs, and this broker also in files."""
    return keys_of_table(DYNAMIC_ONLY_TABLE)


@cache
def topic_keys() -> dict[str, ConfigKey]:
    """Return all topic settings by name."""
    return keys_of_table(TOPIC_TABLE, "dynamic")


class TypedValues:
    """Typed access to settings, such as `config.int("num.partitions")`."""

    _values: Mapping[builtins.str, Value]
    """Values that `int` reads without calling `get`."""

    def get(self, name: builtins.str) -> Value:
        """Return the effective value. Raises KeyError if the name is unknown."""
        raise NotImplementedError

    def int(self, name: builtins.str) -> builtins.int:
        """Return the value of an integer setting (type short, int or long)."""
        # Read cached values directly: `get` is slower, and every Fetch request reads integer settings.
        return self._values[name] if name in self._values else self.get(name)  # type: ignore[return-value]

    def str(self, name: builtins.str) -> builtins.str | None:
        """Return the value of a text setting, or None if it is unset and has no default."""
        return cast("builtins.str | None", self.get(name))

    def bool(self, name: builtins.str) -> builtins.bool:
        return cast(builtins.bool, self.get(name))

    def list(self, name: builtins.str) -> builtins.list[builtins.str]:
        """Return the items of a list setting. An unset list is empty."""
        return cast(builtins.list[builtins.str], self.get(name) or [])

    def double(self, name: builtins.str) -> float:
        return cast(float, self.get(name))
