"""Identifies the content of a law written in Python, so that a sweep does not take the runs of another law for its own."""

from __future__ import annotations

import functools
import hashlib
import pickle
import types

from . import _native

# What the interpreter adds to a class, and what changes nothing.
_SKIPPED = {
    "__abstractmethods__",
    "__annotations__",
    "__dict__",
    "__doc__",
    "__firstlineno__",
    "__module__",
    "__qualname__",
    "__slotnames__",
    "__static_attributes__",
    "__weakref__",
    "_abc_impl",
}

# `Py_TPFLAGS_HEAPTYPE`: a class that a program has made, and not the interpreter.
_HEAP = 1 << 9


def digest(law):
    """A hash of a class or another callable: of its code and values, of its bases, and of the functions, classes and values of its module that the
    code names. Other modules count by name and version. It differs between versions of Python, because their code does."""
    try:
        return _hash(_Reader().text(law).encode())
    except RecursionError:
        name = getattr(law, "__name__", law)
        raise _native.Error(f"the values of the law `{name}` are nested too deep to identify it; keep them flatter") from None


def _hash(content):
    return hashlib.blake2b(content, digest_size=16).hexdigest()


class _Reader:
    def __init__(self):
        # Objects that are being described, by identity: they may name each other. The objects are kept, so that no identity is used twice.
        self.seen = {}

    def text(self, it):
        if it is None or isinstance(it, (bool, int, float, complex, str, bytes)):
            return f"{type(it).__name__} {it!r}"
        if isinstance(it, (staticmethod, classmethod)):
            return f"{type(it).__name__} {self.text(it.__func__)}"
        if isinstance(it, types.ModuleType):
            return f"module {it.__name__} {getattr(it, '__version__', '')}"
        if id(it) in self.seen:
            return f"seen {self.seen[id(it)][0]}"
        self.seen[id(it)] = len(self.seen), it
        if isinstance(it, (list, tuple)):
            return f"{type(it).__name__} [{', '.join(map(self.text, it))}]"
        if isinstance(it, (set, frozenset)):
            # Their order differs between processes.
            return f"{type(it).__name__} {sorted(_Reader().text(element) for element in it)}"
        if isinstance(it, dict):
            return f"dict [{', '.join(f'{self.text(key)}: {self.text(value)}' for key, value in it.items())}]"
        if isinstance(it, type):
            return self.type(it)
        if isinstance(it, types.FunctionType):
            return self.function(it)
        if isinstance(it, types.MethodType):
            return f"method {self.text(it.__func__)} of {self.text(it.__self__)}"
        if isinstance(it, functools.partial):
            return f"partial {self.text((it.func, it.args, it.keywords))}"
        if isinstance(it, property):
            return f"property {self.text((it.fget, it.fset, it.fdel))}"
        if isinstance(it, types.CodeType):
            return self.code(it)
        return self.other(it)

    def type(self, it):
        if not it.__flags__ & _HEAP or it.__module__.partition(".")[0] == "anabranch":
            return f"type {it.__module__}.{it.__qualname__}"
        own = sorted((key, value) for key, value in vars(it).items() if key not in _SKIPPED)
        # Slots are described by `__slots__`.
        own = [(key, value) for key, value in own if not isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType))]
        bases = [self.text(base) for base in it.__bases__]
        return f"class {it.__qualname__} {bases} {[(key, self.text(value)) for key, value in own]}"

    def function(self, it):
        named = [(name, self.text(it.__globals__[name])) for name in sorted(_names(it.__code__)) if name in it.__globals__]
        cells = [self.text(cell.cell_contents) for cell in it.__closure__ or () if _is_full(cell)]
        return f"def {self.code(it.__code__)} {self.text((it.__defaults__, it.__kwdefaults__))} {cells} {named}"

    def code(self, it):
        shape = (it.co_argcount, it.co_posonlyargcount, it.co_kwonlyargcount, it.co_flags)
        names = (it.co_names, it.co_varnames, it.co_freevars, it.co_cellvars)
        return f"code {shape} {it.co_code.hex()} {names} {[self.text(constant) for constant in it.co_consts]}"

    def other(self, it):
        kind = f"{type(it).__module__}.{type(it).__qualname__}"
        try:
            return f"{kind} {_hash(pickle.dumps(it, protocol=4))}"
        except Exception:
            # Nothing more is known of it.
            return kind


def _names(code):
    """All names that a function's code uses, also within the functions in it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _is_full(cell):
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True
