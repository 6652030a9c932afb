"""Private parts of dependencies that the product uses: they exist, and one module names them all."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

from chatsite import dependency_internals

PACKAGES = ("chat", "chatsite", "history", "ingestion")
HOME = Path(dependency_internals.__file__)
BASE = HOME.parent.parent
# Names with an underscore that the documentation of Python or Django nevertheless describes.
DOCUMENTED = {
    "_asdict", "_base_manager", "_current_frames", "_default_manager", "_exit", "_fields", "_make", "_meta",
    "_open", "_replace", "_save", "_state",
}  # fmt: skip
# Each attribute that the module reads or calls: its owner, and its parameters if it is called.
USED = {
    "_check_connection_ok": ("psycopg.Connection", "(self)"),
    "_connection_pools": ("django.db.backends.postgresql.base.DatabaseWrapper", None),
    "_get_source": ("openpyxl.worksheet._read_only.ReadOnlyWorksheet", "(self)"),
    "_has_been_logged": ("django.utils.log", None),
    "_lock": ("psycopg_pool.pool.ConnectionPool", None),
    "_map_serializer": (
        "drf_spectacular.openapi.AutoSchema",
        "(self, serializer, direction, bypass_extensions=False)",
    ),
    "_messages": ("django.contrib.messages.middleware", None),
    "_nodb_cursor": ("django.db.backends.base.creation.BaseDatabaseCreation", "(self)"),
    "_pool": ("psycopg_pool.pool.ConnectionPool", None),
    "_raw_delete": ("django.db.models.QuerySet", "(self, using)"),
    "_request": ("rest_framework.request.Request", None),
    "_resource_closers": ("django.http.response.HttpResponseBase", None),
    "_set_autocommit_gen": ("psycopg.Connection", "(self, value)"),
    "_unquote": ("http.cookies", None),  # replaced by our own function
    "_work_queue": ("concurrent.futures.ThreadPoolExecutor", None),
    "_wrapped": ("django.utils.functional.LazyObject", None),
}
OVERRIDDEN = {
    "_close": "(self)",
    "_commit": "(self)",
    "_destroy_test_db": "(self, test_database_name, verbosity)",
    "_map_basic_serializer": "(self, serializer, direction)",
    "_rollback": "(self)",
    "_savepoint_rollback": "(self, sid)",
}


def test_each_attribute_exists_with_its_parameters():
    for name, (owner, parameters) in USED.items():
        check(owner, name, parameters)
    for owner, methods in dependency_internals.OVERRIDDEN.items():
        for name in methods:
            check(owner, name, OVERRIDDEN[name])


def check(owner, name, parameters):
    found = resolve(owner)
    # An attribute of instances appears in the code of their class or module.
    there = name in inspect.getsource(found) if parameters is None else hasattr(found, name)
    assert there, f"{owner} has no {name} any more: see chatsite/dependency_internals.py for its use."
    if parameters is not None:
        now = names_of_parameters(getattr(found, name))
        assert now == parameters, f"{owner}.{name} takes {now}, and the product expects {parameters}."


def resolve(dotted):
    module, _, name = dotted.rpartition(".")
    try:
        return importlib.import_module(dotted)
    except ModuleNotFoundError:
        return getattr(importlib.import_module(module), name)


def names_of_parameters(function):
    """A signature such as "(self, value=None)", without annotations."""
    signature = inspect.signature(function)
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def test_the_lists_are_those_of_the_module():
    assert set(USED) == {name for name, _ in private_names(HOME)}
    assert set(OVERRIDDEN) == {name for each in dependency_internals.OVERRIDDEN.values() for name in each}


@pytest.mark.slow
def test_no_other_module_uses_a_private_attribute():
    ours = {path: defined_names(path) for path in product_files()}
    everywhere = set().union(*ours.values())
    foreign = [
        f"{path.relative_to(BASE)}:{line} {name}"
        for path in ours
        if path != HOME
        for name, line in private_names(path, inherited=everywhere)
        if name not in ours[path] | DOCUMENTED | set(OVERRIDDEN)
    ]
    assert not foreign, "Move to chatsite/dependency_internals.py, or use something documented."


@pytest.mark.slow
def test_no_other_private_method_is_overridden():
    """Not even by accident, by a method with the same name as one of a base class."""
    overridden = set()
    for path in product_files():
        module = ".".join(path.relative_to(BASE).with_suffix("").parts).removesuffix(".__init__")
        try:
            members = vars(importlib.import_module(module)).values()
        except ModuleNotFoundError as error:  # an optional package
            if error.name.partition(".")[0] in PACKAGES:
                raise
            continue
        for each in members:
            if inspect.isclass(each) and each.__module__ == module:
                bases = [base for base in each.__mro__ if base.__module__.partition(".")[0] not in PACKAGES]
                ours = {name for name, value in vars(each).items() if is_written_in(module, value)}
                overridden |= {name for base in bases for name in ours & set(vars(base))}
    assert {name for name in overridden if is_private(name)} - DOCUMENTED == set(OVERRIDDEN)


def product_files():
    for package in PACKAGES:
        for path in sorted((BASE / package).rglob("*.py")):
            if not {"tests", "migrations"} & set(path.parts):
                yield path


def is_written_in(module, value):
    return inspect.isfunction(value) and value.__module__ == module and "<" not in value.__code__.co_filename


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and len(name) > 1


def defined_names(path):
    """Names that a module defines: functions, classes, variables, attributes of `self`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
            case ast.Attribute(ctx=ast.Store(), value=ast.Name(id="self" | "cls")):
                names.add(node.attr)
    return names


def private_names(path, inherited=()):
    """Private attributes that a module reads, sets or imports, each with its line.

    Those of `self` and `super()` may be in `inherited`.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls") | ast.Call(func=ast.Name(id="super"))):
                found = [node.attr] if node.attr not in inherited else []
            case ast.Attribute():
                found = [node.attr]
            case ast.Call(func=ast.Name(id="getattr" | "setattr" | "hasattr")):
                found = [each.value for each in node.args if isinstance(each, ast.Constant)]
            case ast.ImportFrom():
                found = [*node.module.split("."), *(each.name for each in node.names)] if node.module else []
            case _:
                continue
        yield from ((name, node.lineno) for name in found if isinstance(name, str) and is_private(name))
