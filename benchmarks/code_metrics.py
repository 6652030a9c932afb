"""Print the size and grain of the code: functions, modules, templates, duplicates, depth of one request.

    python benchmarks/code_metrics.py            # everything but the request
    python benchmarks/code_metrics.py --request  # also the files entered by one POST /chat/stream
    python benchmarks/code_metrics.py --helpers  # only list the helpers that could be inlined

Migrations and generated files do not count; tests count only as lines.
"""

import argparse
import ast
import collections
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BASE = Path(__file__).resolve().parent.parent
PACKAGES = ("chat", "chatsite", "history", "ingestion")
LONG_FUNCTION = 40
DUPLICATE_LINES = 8
REPEATED = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def tracked(*patterns: str) -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files", *patterns], cwd=BASE, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [BASE / name for name in names if "/migrations/" not in name and (BASE / name).exists()]


def product_modules() -> list[Path]:
    modules = tracked("*.py")
    return [
        path for path in modules if path.relative_to(BASE).parts[0] in PACKAGES and "tests" not in path.parts
    ]


def lines_of(paths: list[Path]) -> int:
    return sum(len(path.read_text().splitlines()) for path in paths)


def functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def function_lengths(modules: list[Path]) -> list[int]:
    lengths = []
    for path in modules:
        for function in functions(ast.parse(path.read_text())):
            lengths.append((function.end_lineno or function.lineno) - function.lineno + 1)
    return sorted(lengths)


class Helper(NamedTuple):
    path: Path
    function: Function
    could_be_inlined: bool

    def __str__(self) -> str:
        lines = (self.function.end_lineno or self.function.lineno) - self.function.lineno + 1
        return f"{self.path.relative_to(BASE)}:{self.function.lineno} {self.function.name}, {lines} lines"


def helpers_used_once(modules: list[Path]) -> list[Helper]:
    """Private functions that are used exactly once, and whether they could be inlined.

    Functions cannot be inlined if they have a decorator (context managers, caches), are passed on instead of
    called (callbacks, rows of a table), consist of several statements and are called in a lambda or a
    comprehension, or are generators that no `for` or `yield from` consumes.
    """
    helpers = []
    for path in modules:
        tree = ast.parse(path.read_text())
        uses: dict[str, list[ast.expr]] = collections.defaultdict(list)
        parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(tree):
            parents |= dict.fromkeys(ast.iter_child_nodes(node), node)
            if isinstance(node, ast.Name):
                uses[node.id].append(node)
            elif isinstance(node, ast.Attribute):
                uses[node.attr].append(node)
        for function in tree.body:
            if not isinstance(function, Function) or not function.name.startswith("_"):
                continue
            if len(uses[function.name]) == 1:
                inlinable = can_be_inlined(function, uses[function.name][0], parents)
                helpers.append(Helper(path, function, inlinable))
    return helpers


def can_be_inlined(function: Function, use: ast.expr, parents: dict[ast.AST, ast.AST]) -> bool:
    call = parents[use]
    if function.decorator_list or not isinstance(call, ast.Call) or call.func is not use:
        return False
    statements = len(function.body) - (ast.get_docstring(function) is not None)
    node: ast.AST = call
    while not isinstance(node, ast.stmt):
        node = parents[node]
        if isinstance(node, REPEATED) and statements > 1:
            return False
    is_generator = any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(function))
    return not is_generator or isinstance(parents[call], ast.For | ast.AsyncFor | ast.YieldFrom)


def modules_by_folder(modules: list[Path]) -> collections.Counter[str]:
    return collections.Counter(
        str(path.parent.relative_to(BASE)) for path in modules if path.name != "__init__.py"
    )


def import_lines(path: Path) -> set[int]:
    """The numbers of all lines of import statements."""
    return {
        number
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def duplicate_runs(modules: list[Path]) -> int:
    """The number of runs of equal lines that occur in two places.

    Blank lines, comments and imports do not count.
    """
    places: dict[tuple[str, ...], list[tuple[Path, int]]] = collections.defaultdict(list)
    for path in modules:
        imports = import_lines(path)
        numbered = enumerate(path.read_text().splitlines(), start=1)
        stripped = [line.strip() for number, line in numbered if number not in imports]
        lines = [line for line in stripped if line and not line.startswith("#")]
        for start in range(len(lines) - DUPLICATE_LINES + 1):
            window = tuple(lines[start : start + DUPLICATE_LINES])
            if sum(len(line) > 3 for line in window) >= DUPLICATE_LINES - 1:
                places[window].append((path, start))
    repeated = {place for found in places.values() if len(found) > 1 for place in found[1:]}
    return sum((path, start - 1) not in repeated for path, start in repeated)


def template_lines() -> list[int]:
    return [len(line) for path in tracked("templates/*.html") for line in path.read_text().splitlines()]


def request_depth() -> tuple[int, int]:
    """The number of files entered by one streamed answer, and of async generators open at the same time."""
    command = [sys.executable, "-m", "pytest", "-q", "-s", "benchmarks/request_depth.py"]
    output = subprocess.run(command, cwd=BASE, capture_output=True, text=True, check=True).stdout
    files, depth = re.findall(r"^(?:files entered|nested generators): (\d+)$", output, re.MULTILINE)
    return int(files), int(depth)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--request", action="store_true", help="also measure one POST /chat/stream")
    parser.add_argument("--helpers", action="store_true", help="only list the helpers that could be inlined")
    options = parser.parse_args()
    modules = product_modules()
    helpers = helpers_used_once(modules)
    inlinable = [helper for helper in helpers if helper.could_be_inlined]
    if options.helpers:
        print(*inlinable, sep="\n")
        return
    lengths = function_lengths(modules)
    templates = template_lines()
    product = lines_of(modules)
    longest = max(modules, key=lambda path: len(path.read_text().splitlines()))
    rows = [
        ("lines of Python, product / all", f"{product:,} / {lines_of(tracked('*.py')):,}"),
        ("modules", str(len(modules))),
        ("functions", f"{len(lengths):,}"),
        ("function lines, p90", str(lengths[int(len(lengths) * 0.9)])),
        ("functions over 40 lines", f"{sum(x > LONG_FUNCTION for x in lengths) / len(lengths):.1%}"),
        ("private helpers used once, per 1,000 lines", f"{len(helpers) / product * 1000:.1f}"),
        ("  of these, that could be inlined", f"{len(inlinable) / product * 1000:.1f}"),
        ("longest module", f"{longest.relative_to(BASE)}, {len(longest.read_text().splitlines())} lines"),
        (f"repeated runs of {DUPLICATE_LINES} lines", str(duplicate_runs(modules))),
        ("template line, mean / max characters", f"{statistics.mean(templates):.0f} / {max(templates)}"),
    ]
    rows += [
        (f"modules in {name}/", str(number)) for name, number in modules_by_folder(modules).most_common(6)
    ]
    if options.request:
        files, depth = request_depth()
        rows += [("files entered by POST /chat/stream", str(files)), ("async generators nested", str(depth))]
    for name, value in rows:
        print(f"{name:<46} {value}")


if __name__ == "__main__":
    main()
