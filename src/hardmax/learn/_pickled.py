"""What a pickle says, read as data: no name in it is imported, and nothing is called.

The instructions of a pickle build a tree.  Where one of them would import, it leaves the
name; where one would call, it leaves the function's name beside its arguments.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Called", "Made", "Name", "Stored", "read_pickle"]

_MARK = object()


@dataclass(frozen=True)
class Name:
    """What would have been imported."""

    module: str
    name: str


@dataclass(eq=False)
class Called:
    """What a function would have been called with; entries set on the result."""

    function: Any
    arguments: Any
    entries: dict[Any, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Made(Called):
    """An object of a class, and the state it would have been given."""

    state: Any = None


@dataclass(frozen=True)
class Stored:
    """A reference to what lies outside of the pickle."""

    key: Any


def read_pickle(data: bytes) -> Any:
    """The tree that a pickle describes: dicts, lists, tuples, plain values and the above.

    Raises
    ------
    ValueError
        If it is no pickle, or has an instruction that torch does not write.
    """
    machine = _Machine()
    for code, argument, _ in pickletools.genops(data):
        machine.step(code.name, argument)
    if len(machine.stack) != 1:
        raise ValueError("the pickle ends in the middle")
    return machine.stack[0]


class _Machine:
    """The stack and the memory of a pickle, filled with inert values."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memory: dict[int, Any] = {}

    def step(self, code: str, argument: Any) -> None:
        """Obey one instruction."""
        if code in _VALUES:
            self.stack.append(argument)
        elif code in _CONSTANTS:
            self.stack.append(_CONSTANTS[code]())
        elif code in _ACTIONS:
            _ACTIONS[code](self, argument)
        elif code not in ("PROTO", "FRAME", "STOP"):
            raise ValueError(f"a pickle with the instruction {code}")

    def pop(self) -> Any:
        """The value on top."""
        if not self.stack or self.stack[-1] is _MARK:
            raise ValueError("a pickle that takes what is not there")
        return self.stack.pop()

    def top(self) -> Any:
        """The value on top, which stays."""
        self.stack.append(self.pop())
        return self.stack[-1]

    def since_mark(self) -> list[Any]:
        """The values above the last mark."""
        out: list[Any] = []
        while self.stack and self.stack[-1] is not _MARK:
            out.append(self.stack.pop())
        if not self.stack:
            raise ValueError("a pickle without a mark")
        self.stack.pop()
        return out[::-1]


def _put(m: _Machine, argument: Any) -> None:
    m.memory[len(m.memory) if argument is None else int(argument)] = m.top()


def _get(m: _Machine, argument: Any) -> None:
    if int(argument) not in m.memory:
        raise ValueError("a pickle that remembers what it was not told")
    m.stack.append(m.memory[int(argument)])


def _global(m: _Machine, argument: Any) -> None:
    module, _, name = str(argument).partition(" ")
    m.stack.append(Name(module, name))


def _stack_global(m: _Machine, _: Any) -> None:
    name, module = m.pop(), m.pop()
    m.stack.append(Name(str(module), str(name)))


def _call(kind: type[Called]) -> Callable[[_Machine, Any], None]:
    def call(m: _Machine, _: Any) -> None:
        arguments = m.pop()
        m.stack.append(kind(m.pop(), arguments))

    return call


def _build(m: _Machine, _: Any) -> None:
    state = m.pop()
    if isinstance(m.top(), Made):
        m.top().state = state
    elif not isinstance(m.top(), Called):
        raise ValueError("a pickle that gives a state to a plain value")


def _tuple(size: int) -> Callable[[_Machine, Any], None]:
    def build(m: _Machine, _: Any) -> None:
        m.stack.append(tuple([m.pop() for _ in range(size)][::-1]))

    return build


def _set(m: _Machine, pairs: list[Any]) -> None:
    goal = m.top()
    entries = goal.entries if isinstance(goal, Called) else goal
    if not isinstance(entries, dict) or len(pairs) % 2:
        raise ValueError("a pickle that sets entries of what has none")
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        if not isinstance(key, str | int | float | bytes | None):
            raise ValueError("a pickle with a key that is no plain value")
        entries[key] = value


def _append(m: _Machine, values: list[Any]) -> None:
    if not isinstance(m.top(), list):
        raise ValueError("a pickle that appends to what is no list")
    m.top().extend(values)


def _pair(m: _Machine, _: Any) -> None:
    value, key = m.pop(), m.pop()
    _set(m, [key, value])


def _one(m: _Machine, _: Any) -> None:
    value = m.pop()
    _append(m, [value])


_VALUES = frozenset(
    {
        "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "LONG", "FLOAT", "BINFLOAT",
        "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "STRING", "BINSTRING",
        "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES",
    }
)  # fmt: skip
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict, "MARK": lambda: _MARK,
}  # fmt: skip
_ACTIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "PUT": _put, "BINPUT": _put, "LONG_BINPUT": _put, "MEMOIZE": _put,
    "GET": _get, "BINGET": _get, "LONG_BINGET": _get,
    "GLOBAL": _global, "STACK_GLOBAL": _stack_global,
    "REDUCE": _call(Called), "NEWOBJ": _call(Made), "BUILD": _build,
    "BINPERSID": lambda m, _: m.stack.append(Stored(m.pop())),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.since_mark())),
    "TUPLE1": _tuple(1), "TUPLE2": _tuple(2), "TUPLE3": _tuple(3),
    "SETITEM": _pair, "SETITEMS": lambda m, _: _set(m, m.since_mark()),
    "APPEND": _one, "APPENDS": lambda m, _: _append(m, m.since_mark()),
}  # fmt: skip
