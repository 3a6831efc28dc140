"""`IntEnum` for tables that every broker loads at startup. `enum.IntEnum` needs 70,000 instructions and a
dictionary for each member. For the error codes and API keys, this would be 4% of the startup.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from enum import IntEnum as IntEnum
else:

    class _Table(type):
        """Creates a member for each integer in the body of a class."""

        def __init__(cls, name, bases, body):
            super().__init__(name, bases, body)
            numbers = {key: value for key, value in body.items() if type(value) is int}
            cls.__members__ = {key: int.__new__(cls, value) for key, value in numbers.items()}
            cls._names = {member: key for key, member in cls.__members__.items()}
            for key, member in cls.__members__.items():
                setattr(cls, key, member)

        def __iter__(cls):
            return iter(cls._names)

        def __getitem__(cls, name):
            return cls.__members__[name]

    class IntEnum(int, metaclass=_Table):
        """A number with a name, like `enum.IntEnum`. Two members cannot have the same number."""

        __slots__ = ()
        __str__ = int.__repr__

        def __new__(cls, number):
            if number not in cls._names:
                raise ValueError(f"{number!r} is not a valid {cls.__qualname__}")
            return cls.__members__[cls._names[number]]

        def __repr__(self):
            return f"<{type(self).__name__}.{self.name}: {int(self)}>"

        @property
        def name(self):
            return self._names[self]
