# SPDX-License-Identifier: BSD-3-Clause
"""Says which argument of a call is wrong. The extension modules only say that one of them is, in terms of their own.

Arguments are compared with their annotations only after a call has failed.
"""
from __future__ import annotations

import ast
import collections.abc
import dataclasses
import dis
import enum
import functools
import inspect
import re
import reprlib
import struct
import sys
import types
import typing

F = typing.TypeVar("F", bound=typing.Callable[..., typing.Any])

_NoneType = type(None)  # a name of Python since 3.10
MISTAKES = (TypeError, AttributeError, OverflowError, struct.error)  # to which wrong arguments lead


# ---- Functions that explain their exceptions -------------------------------------------------------------------------


def checked(function: F) -> F:
    """Returns a function that calls explain(). It is `function` itself if that takes no arguments."""
    signature = inspect.signature(function)
    if not set(signature.parameters) - {"self", "cls"}:
        return function

    def explain_call(error: Exception, /, *args: object, **kwargs: object) -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # an argument is missing or unknown, and the error says so
            return
        explain(error, function, bound.arguments)

    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def awaiting(*args: object, **kwargs: object) -> object:
            try:
                return await function(*args, **kwargs)
            except MISTAKES as error:
                explain_call(error, *args, **kwargs)
                raise
        return typing.cast(F, awaiting)

    @functools.wraps(function)
    def calling(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except MISTAKES as error:
            explain_call(error, *args, **kwargs)
            raise
    return typing.cast(F, calling)


def quick(function: F) -> F:
    """Marks a method of the data path, which Checked leaves as it is. It calls explain() itself, or what it calls
    does: that takes no time unless it fails."""
    vars(function)["_quick"] = True
    return function


class Checked:
    """The base class of classes whose methods are checked(): __init__, the public ones, and setters of properties."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, member in list(vars(cls).items()):
            if name.startswith("_") and name != "__init__":
                continue
            if isinstance(member, types.FunctionType) and not hasattr(member, "_quick"):
                setattr(cls, name, checked(member))
            elif isinstance(member, classmethod):
                setattr(cls, name, classmethod(checked(member.__func__)))
            elif isinstance(member, property) and member.fset is not None:
                setattr(cls, name, member.setter(checked(member.fset)))


# ---- Which argument is wrong -----------------------------------------------------------------------------------------


def explain(error: Exception, function: typing.Callable[..., object], arguments: dict[str, typing.Any]) -> None:
    """Raises an exception in place of `error`, with which a call of `function` has failed: TypeError for an argument
    that does not have the type of its annotation, OverflowError for a number that does not fit. Returns if `error` is
    clear, or no argument is found to be wrong.

    The arguments may be among locals() with the name `error`. That name is removed, because Python may keep the
    dictionary with the frame, and an exception that refers to itself keeps all arguments.
    """
    arguments.pop("error", None)
    explanation = None if _is_deliberate(error) else _explanation(error, function, arguments)
    if explanation is not None:
        try:
            raise explanation from None
        finally:
            del explanation  # for the same reason


def _explanation(error: Exception, function: typing.Callable[..., object],
                 arguments: dict[str, typing.Any]) -> Exception | None:
    parts = list(_parts_of(inspect.unwrap(function), arguments))
    for part in parts:
        if not any(_matches(kind, part.value) for kind in part.kinds):
            accepted = " or ".join(map(_name_of, part.kinds))
            return TypeError(f"{part.name} must be {accepted}, not {reprlib.repr(part.value)}")
    by_pybind11 = isinstance(error, TypeError) and "The following argument types are supported:" in str(error)
    if not by_pybind11 and not isinstance(error, (OverflowError, struct.error)):
        return None
    doubtful = [part for part in parts if part.may_not_fit()]
    if len(doubtful) == 1:
        return OverflowError(doubtful[0].misfit(str(error)))
    shown = ", ".join(f"{part.name}={reprlib.repr(part.value)}" for part in doubtful or parts)
    if doubtful:
        return OverflowError(f"a number does not fit: {shown}")
    return TypeError(f"{function.__name__}() does not accept {shown}") if by_pybind11 else None


def _is_deliberate(error: Exception) -> bool:
    """Whether a `raise` statement has raised it, so that it was worded for the case. An AttributeError never was: it
    means that an object is of another class than was expected."""
    if isinstance(error, AttributeError):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"


class _Part(typing.NamedTuple):
    """An argument, or a field of one that is a structure."""
    name: str
    kinds: list[object]  # what is accepted
    value: object
    is_place: bool  # whether it is a field of a tuple, such as an address

    def may_not_fit(self) -> bool:
        """Whether it is a number that some type of number in C does not have."""
        if not isinstance(self.value, int) or isinstance(self.value, enum.Enum):
            return False
        return not 0 <= self.value < 1 << (64 if self.is_place else 31)

    def misfit(self, text: str) -> str:
        """What to say if it does not fit. `text` is that of the extension module."""
        if isinstance(self.value, int) and -1 << 31 <= self.value < 0:
            return f"{self.name} must not be negative: {self.value}"
        if text.startswith(f"{self.value} "):
            return f"{self.name}: {text}"
        return f"{self.name} does not fit: {self.value}"


def _parts_of(function: typing.Callable[..., object],
              arguments: typing.Mapping[str, object]) -> typing.Iterator[_Part]:
    scope = _scope_of(function.__module__)
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in arguments or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = arguments[name]
        if parameter.annotation is not parameter.empty:
            yield _Part(name, _kinds_of(parameter.annotation, scope), value, False)
            yield from _fields_of(name, value)


def _fields_of(name: str, value: object) -> typing.Iterator[_Part]:
    scope = _scope_of(type(value).__module__)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            content = getattr(value, field.name)
            if content is not field.default:
                yield _Part(f"{name}.{field.name}", _kinds_of(field.type, scope), content, False)
    elif isinstance(value, tuple):
        for key, annotation in vars(type(value)).get("__annotations__", {}).items():
            if key in getattr(value, "_fields", ()):
                yield _Part(f"{name}.{key}", _kinds_of(annotation, scope), getattr(value, key), True)


# ---- Annotations -----------------------------------------------------------------------------------------------------


def _scope_of(module: str) -> dict[str, object]:
    """Returns the names that annotations of a module may use. Those of later modules are names of the package."""
    known = [sys.modules.get(name) for name in (module.rpartition(".")[0], module)]
    return {name: value for found in known if found is not None for name, value in vars(found).items()}


def _kinds_of(annotation: object, scope: dict[str, object]) -> list[object]:
    """Returns the types between which the annotation leaves the choice."""
    annotation = getattr(annotation, "__forward_arg__", annotation)
    if isinstance(annotation, str):
        annotation = ast.parse(annotation.strip(), mode="eval").body
    if isinstance(annotation, ast.BinOp):  # which Python 3.9 does not evaluate
        return _kinds_of(annotation.left, scope) + _kinds_of(annotation.right, scope)
    if isinstance(annotation, ast.expr):
        try:
            annotation = eval(compile(ast.Expression(annotation), "<annotation>", "eval"), scope)
        except Exception:
            return [typing.Any]
        return _kinds_of(annotation, scope)
    if typing.get_origin(annotation) is typing.Union:
        return [kind for alternative in typing.get_args(annotation) for kind in _kinds_of(alternative, scope)]
    return [_NoneType if annotation is None else annotation]


def _matches(kind: object, value: object, *, in_sequence: bool = False) -> bool:
    """Whether the value may be used as one of that type. Numbers may have any type of number; in a sequence, tuples of
    the right length are as good as named ones."""
    origin, parameters = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin is typing.Any or not isinstance(origin, type):
        return True
    if issubclass(origin, int):
        return hasattr(value, "__index__")
    if origin is float:
        return hasattr(value, "__float__") or hasattr(value, "__index__")
    if in_sequence and isinstance(value, tuple) and hasattr(origin, "_fields"):
        return len(value) == len(origin._fields)
    if not isinstance(value, origin):
        return False
    if isinstance(value, tuple) and origin is tuple and ... not in parameters:
        return len(value) == len(parameters) and all(map(_matches, parameters, value))
    if isinstance(value, collections.abc.Sequence) and parameters:
        kinds = _kinds_of(parameters[0], {})
        return all(any(_matches(kind, item, in_sequence=True) for kind in kinds) for item in value)
    return True


def _name_of(kind: object) -> str:
    if kind is _NoneType:
        return "None"
    if isinstance(kind, type) and not typing.get_args(kind):
        return kind.__name__
    return re.sub(r"\b(typing|viaduct)\.([a-z_]+\.)*", "", str(kind))
