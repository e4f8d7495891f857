# SPDX-License-Identifier: BSD-3-Clause
"""Says which argument of a call is wrong. The extension modules only say that one of them is, in terms of their own.

Arguments are compared with their annotations only after a call has failed. An exception that was raised with `from` is
worded for its case, and stays.
"""
from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import re
import reprlib
import struct
import sys
import types
import typing
from types import NoneType, UnionType

from viaduct.errors import TimeoutError

F = typing.TypeVar("F", bound=typing.Callable[..., typing.Any])

MISTAKES = (TypeError, AttributeError, OverflowError, struct.error)  # to which wrong arguments lead


_signature = functools.lru_cache(maxsize=None)(inspect.signature)


def awaits(awaited: str) -> typing.Callable[[F], F]:
    """Marks a method that has a timeout with what it waits for: checked() makes its TimeoutError say that."""
    def mark(function: F) -> F:
        vars(function)["_awaited"] = awaited
        return function
    return mark


def checked(function: F) -> F:
    """Returns a function that calls explain(). It is `function` itself if that takes no arguments."""
    if not function.__annotations__.keys() - {"return"}:
        return function
    awaited: str | None = vars(function).get("_awaited")

    def explain_call(error: Exception, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        try:
            arguments = _signature(function).bind(*args, **kwargs).arguments
        except TypeError:  # an argument is missing or unknown, and the error says so
            return
        if not isinstance(error, TimeoutError):
            explain(error, function, arguments)
        elif awaited is not None and arguments.get("timeout") is not None:
            error._say(function.__qualname__, awaited, arguments["timeout"])

    @functools.wraps(function)
    async def awaiting(*args: object, **kwargs: object) -> object:
        try:
            return await function(*args, **kwargs)
        except (*MISTAKES, TimeoutError) as error:
            explain_call(error, args, kwargs)
            raise

    @functools.wraps(function)
    def calling(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except (*MISTAKES, TimeoutError) as error:
            explain_call(error, args, kwargs)
            raise
    return typing.cast(F, awaiting if inspect.iscoroutinefunction(function) else calling)


def quick(function: F) -> F:
    """Marks a method of the data path, which Checked leaves as it is. It calls explain() itself, or what it calls
    does, or explain_caller(): that takes no time unless it fails."""
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


def explain(error: Exception | None, function: typing.Callable[..., object],
            arguments: dict[str, typing.Any]) -> None:
    """Raises an exception in place of `error`, with which a call of `function` has failed: TypeError for an argument
    that does not have the type of its annotation, OverflowError for a number that does not fit. Returns if `error` is
    clear. The arguments may be among locals() with the name `error`. None: it is known only that an argument is wrong.
    """
    arguments.pop("error", None)  # a frame may keep the dictionary, and with an error that refers to it all arguments
    if error is not None and error.__suppress_context__:
        return
    annotations = {name: each.annotation for name, each in inspect.signature(function).parameters.items()
                   if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)}
    misfits, given = [], []
    for name, annotation, value, module, limit in _parts(annotations, arguments, function.__module__, "", 1 << 31):
        kinds = _kinds(annotation, module)
        if not any(_fits(kind, value) for kind in kinds):
            names = [kind.__name__ if isinstance(kind, type) else str(kind) for kind in kinds]
            expected = re.sub(r"\b(typing|viaduct)\.([a-z_]+\.)*", "", " or ".join(names))
            raise TypeError(f"{name} must be {expected}, not {reprlib.repr(value)}") from None
        given.append(f"{name}={reprlib.repr(value)}")
        if isinstance(value, int) and not isinstance(value, enum.Enum) and not 0 <= value < limit:
            misfits.append(f"{name}={value}")
    is_unclear = error is None or "The following argument types are supported:" in str(error)  # as pybind11 says
    if misfits and (is_unclear or isinstance(error, (OverflowError, struct.error))):
        reason = "a number is negative or too large" if is_unclear else str(error)
        raise OverflowError(f"{', '.join(misfits)}: {reason}") from None
    if is_unclear:
        raise TypeError(f"{function.__name__}() does not accept {', '.join(given)}") from None


def explain_caller() -> None:
    """explain() for the method that has called an extension module, which calls this."""
    frame = sys._getframe(1)
    method = getattr(type(frame.f_locals.get("self")), frame.f_code.co_name, None)
    if method is not None:  # else a program has called the extension module itself
        explain(None, method, dict(frame.f_locals))


_Part = typing.Tuple[str, object, object, str, int]  # name, annotation, value, module, limit of numbers


def _parts(annotations: dict[str, object], values: dict[str, typing.Any], module: str, prefix: str,
           limit: int) -> typing.Iterator[_Part]:
    """Returns the values, and the fields of those that are structures; without fields that have their default."""
    for name in [name for name in annotations if name in values and name not in ("self", "cls")]:
        value, kind = values[name], type(values[name])
        yield prefix + name, annotations[name], value, module, limit
        fields = vars(kind).get("__annotations__", {})
        if dataclasses.is_dataclass(kind):
            changed = {key: field for key, field in vars(value).items() if field is not getattr(kind, key, None)}
            yield from _parts(fields, changed, kind.__module__, f"{prefix}{name}.", limit)
        elif hasattr(kind, "_asdict"):
            yield from _parts(fields, value._asdict(), kind.__module__, f"{prefix}{name}.", 1 << 64)


def _kinds(annotation: typing.Any, module: str) -> list[typing.Any]:
    """Returns the types between which an annotation leaves the choice. It may use names of later modules, which are
    names of the package."""
    try:
        scope = {**vars(sys.modules[module.rpartition(".")[0]]), **vars(sys.modules[module])}
        kind = eval(getattr(annotation, "__forward_arg__", annotation), scope)
    except Exception:
        return [typing.Any]
    kinds = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, UnionType) else [kind]
    return [None if each is NoneType else each for each in kinds]


def _fits(kind: typing.Any, value: object) -> bool:
    """Whether the value may be used as one of that type. Numbers may have any type of number."""
    origin, parameters = typing.get_origin(kind) or kind, typing.get_args(kind)
    if kind is None:
        return value is None
    if origin is typing.Any or not isinstance(origin, type):
        return True
    if issubclass(origin, (int, float)):
        return hasattr(value, "__index__") or origin is float and hasattr(value, "__float__")
    wrong_length = isinstance(value, tuple) and parameters and ... not in parameters and len(value) != len(parameters)
    return isinstance(value, origin) and not (origin is tuple and wrong_length)
