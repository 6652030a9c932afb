"""Every regular expression of the product, how it is used, and text on which a careless one is slow."""

import ast
import importlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from re import _constants, _parser

ROOT = Path(__file__).parents[3]
PACKAGES = ("chat", "chatsite", "history", "ingestion")
FUNCTIONS = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
METHODS = FUNCTIONS - {"compile"}
ALIKE = {"subn", "split", "findall", "finditer"}  # methods that scan a text as `sub` does
# Characters of any text: white space, brackets, quotes, digits, Markdown, letters of some scripts.
CHARACTERS = " \t\n\r[](){}<>\"'`“”\\/0aA_.,:;!?-*#=|~@&%^$…中"
BREAKERS = ("", "\x00", "a", "\n", "]", "!")


@dataclass(frozen=True)
class Expression:
    """One expression, its place, and the methods that are called with it."""

    place: str
    pattern: re.Pattern
    methods: tuple[str, ...]


def product_files():
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not {"tests", "migrations"} & set(path.parts):
                yield path


@cache
def trees():
    return {path: ast.parse(path.read_text()) for path in product_files()}


@cache
def uses():
    """For each file and name, the methods that are called on objects of that name."""
    found = {}
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                name = getattr(node.value, "id", None) or getattr(node.value, "attr", None)
                found.setdefault((path, name), set()).add(node.attr)
    return found


def methods_of(path, name):
    """The methods by which a compiled expression is used (private ones: in their own file); else all."""
    used = {
        method
        for (file, known), methods in uses().items()
        if known == name and (file == path or not name.startswith("_"))
        for method in methods
    }
    return used or METHODS


def unlike(methods):
    """The methods whose work no other method includes.

    Some methods scan a text alike; `sub` includes `search`, and `search` includes `match`.
    """
    left = {"sub" if each in ALIKE else each for each in methods}
    if "sub" in left:
        left -= {"search"}
    if left & {"sub", "search"}:
        left -= {"match"}
    return tuple(sorted(left))


@cache
def expressions():
    """All expressions whose text is in the source, and the calls that build one at run time."""
    known, dynamic = [], []
    for path, tree in trees().items():
        compiled = _module_level(path, tree, known)
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                child.parent = node
        for node in ast.walk(tree):
            if not _is_call_of_re(node) or node in compiled:
                continue
            place = f"{path.relative_to(ROOT)}:{_function_of(node)}"
            if isinstance(node.args[0], ast.Constant):
                method = node.func.attr
                flags = _flags(node)
                pattern = re.compile(node.args[0].value, flags)
                known.append(Expression(place, pattern, unlike({method} - {"compile"} or METHODS)))
            else:
                dynamic.append(place)
    return tuple(known), tuple(dynamic)


def other_engines():
    """Imports in a form that would hide an expression from this search."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in ("re", "regex", "sre_compile"):
                yield str(path)
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name == "regex" or (alias.name == "re" and alias.asname):
                        yield str(path)


def _module_level(path, tree, known):
    compiled = set()
    for node in tree.body:
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_call_of_re(value, "compile"):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            place = f"{path.relative_to(ROOT)}:{target.id}"
            known.append(Expression(place, getattr(module, target.id), unlike(methods_of(path, target.id))))
            compiled.add(value)
    return compiled


def _is_call_of_re(node, function=None):
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and getattr(node.func.value, "id", None) == "re"
        and (node.func.attr == function if function else node.func.attr in FUNCTIONS)
    )


def _function_of(node):
    while node is not None and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        node = getattr(node, "parent", None)
    return node.name if node else "module"


def _flags(node):
    place = {"compile": 1, "match": 2, "fullmatch": 2, "search": 2, "findall": 2, "finditer": 2}
    wanted = [word.value for word in node.keywords if word.arg == "flags"]
    at = place.get(node.func.attr)
    if at is not None and len(node.args) > at:
        wanted.append(node.args[at])
    return sum(eval(compile(ast.Expression(flag), "flags", "eval"), {"re": re}) for flag in wanted)


# Texts that nearly match


def pumps(pattern):
    """Texts for an attack: beginnings, repeated parts, and ends that prevent a match."""
    source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    tree = list(
        _parser.parse(
            source, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
        )
    )
    letters = sorted({letter for item in tree for letter in _letters([item])})[:16]
    starts = list(dict.fromkeys(_example(tree[:count]) for count in range(len(tree) + 1)))
    for inner in _bodies(tree):
        starts += [start + inner for start in starts[:3]]
    starts = list(dict.fromkeys(starts))[:14]
    for letter in dict.fromkeys([*CHARACTERS, *letters]):
        yield "", letter, ""
    for start in starts:
        for end in BREAKERS:
            yield "", start, end
        for letter in letters:
            yield start, letter, "\x00"
            yield "", start + 40 * letter, "\x00"


def _bodies(tree):
    for op, value in tree:
        if op in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
            yield _example(value[2])
            yield from _bodies(value[2])
        elif op is _constants.SUBPATTERN:
            yield from _bodies(value[3])
        elif op is _constants.BRANCH:
            for branch in value[1]:
                yield _example(branch)
                yield from _bodies(branch)


def _letters(tree):
    """Some characters that each position of the expression accepts."""
    for op, value in tree:
        if op is _constants.IN:
            yield from [letter for letter in _pool(value) if _in(value, letter)][:6]
        elif op is _constants.LITERAL:
            yield chr(value)
        elif op in (_constants.NOT_LITERAL, _constants.ANY):
            yield from "a x"
        elif op in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
            yield from _letters(value[2])
        elif op is _constants.SUBPATTERN:
            yield from _letters(value[3])
        elif op is _constants.BRANCH:
            for branch in value[1]:
                yield from _letters(branch)
        elif op in (_constants.ASSERT, _constants.ASSERT_NOT):
            yield from _letters(value[1])


def _example(tree):
    """A text that the expression matches, as far as its assertions allow."""
    text = ""
    for op, value in tree:
        if op is _constants.IN:
            text += next((letter for letter in _pool(value) if _in(value, letter)), "")
        elif op is _constants.LITERAL:
            text += chr(value)
        elif op is _constants.NOT_LITERAL:
            text += "a" if value != ord("a") else "b"
        elif op is _constants.ANY:
            text += "a"
        elif op in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
            text += _example(value[2]) * min(max(1, value[0]), 40)
        elif op is _constants.SUBPATTERN:
            text += _example(value[3])
        elif op is _constants.BRANCH:
            text += _example(value[1][0])
    return text


def _pool(members):
    explicit = [chr(value) for op, value in members if op is _constants.LITERAL]
    explicit += [chr(value[0]) for op, value in members if op is _constants.RANGE]
    return [*explicit, *CHARACTERS]


def _in(members, letter):
    negated = bool(members) and members[0][0] is _constants.NEGATE
    return any(_is(op, value, letter) for op, value in members if op is not _constants.NEGATE) != negated


def _is(op, value, letter):
    if op is _constants.LITERAL:
        return ord(letter) == value
    if op is _constants.RANGE:
        return value[0] <= ord(letter) <= value[1]
    categories = {
        _constants.CATEGORY_SPACE: r"\s", _constants.CATEGORY_NOT_SPACE: r"\S",
        _constants.CATEGORY_DIGIT: r"\d", _constants.CATEGORY_NOT_DIGIT: r"\D",
        _constants.CATEGORY_WORD: r"\w", _constants.CATEGORY_NOT_WORD: r"\W",
    }  # fmt: skip
    return bool(re.match(categories[value], letter))


def text_of(pump, size):
    start, unit, end = pump
    return start + (unit or "x") * (max(0, size - len(start)) // len(unit or "x") + 1) + end
