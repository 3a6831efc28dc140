"""Values of settings by their types: `config.int("num.partitions")`."""

from collections.abc import Mapping
from typing import TypeAlias, cast

from kafka_compat.config.keys import Value

# The getters bear the names of the types, which therefore need others in the annotations here.
_Int: TypeAlias = int
_Str: TypeAlias = str
_Bool: TypeAlias = bool
_Strings: TypeAlias = list[str]


class TypedValues:
    """Getters for the types of settings, over `get`."""

    _values: Mapping[_Str, Value]
    """Values that are known without asking `get`."""

    def get(self, name: _Str) -> Value:
        """The value in force; KeyError for a name that no setting has."""
        raise NotImplementedError

    def int(self, name: _Str) -> _Int:
        """A whole number (types short, int and long)."""
        # Asked for by every fetch.
        return self._values[name] if name in self._values else self.get(name)  # type: ignore[return-value]

    def str(self, name: _Str) -> _Str | None:
        """Text; None when it is not set and has no default."""
        return cast("_Str | None", self.get(name))

    def bool(self, name: _Str) -> _Bool:
        """True or false."""
        return cast(_Bool, self.get(name))

    def list(self, name: _Str) -> _Strings:
        """A list; empty when it is not set."""
        return cast(_Strings, self.get(name) or [])

    def double(self, name: _Str) -> float:
        """A number with a fraction."""
        return cast(float, self.get(name))
