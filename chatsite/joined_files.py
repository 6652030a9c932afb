"""Joins the site's styles and scripts when static files are collected.

For example, `static/portal.css` imports the sheets of `static/styles/portal/`, and `static/portal.js` the
modules of `static/scripts/portal/`. Browsers understand these imports, so the development server serves the
files unchanged. In production each file of `ENTRIES` includes everything that it imports, so that pages need
few requests. Scripts lose the lines that are comments, a seventh of their compressed size; otherwise the code
is not minified, and its identifiers keep their names.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage
from servestatic.storage import CompressedManifestStaticFilesStorage

ENTRIES = ("portal.css", "admin.css", "portal.js", "stream.js", "panel.js", "palette.js")

SHEET = re.compile(r'^@import "([^"]+)";\n', re.MULTILINE)
ADDRESS = re.compile(r'(?<=\burl\(")(?!data:)[^"]+')
COMMENT = re.compile(r"^[ \t]*//.*\n", re.MULTILINE)
IMPORT = re.compile(r"^import (?:\{([^}]*)\} from )?'(\.[^']*)';\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?function\*? ([\w$]+)|(?:const|class) ([\w$]+))", re.MULTILINE)
OTHER = re.compile(r"^(?:@?import|export)\b.*", re.MULTILINE)

Read = Callable[[str], str]


class JoinedStaticFilesStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # no types
    """Hashes and compresses files. Imported parts are in the entry that imports them, not separate files."""

    def post_process(self, paths: dict[str, Any], dry_run: bool = False, **options: Any) -> Iterator[Any]:
        served = paths if dry_run else joined(paths)
        yield from super().post_process(served, dry_run=dry_run, **options)


class CannotJoin(ValueError):
    """A file imports or exports something in a way that cannot be joined."""


def joined(paths: dict[str, Any]) -> dict[str, Any]:
    """Replace entries with joined files, and remove their parts.

    `paths` maps a name to its storage and path.
    """

    def read(name: str) -> str:
        storage, path = paths[name]
        with storage.open(path) as file:
            return str(file.read(), "utf-8")

    memory = InMemoryStorage()
    parts: set[str] = set()
    for entry in ENTRIES:
        text, used = join(entry, read)
        if again := parts & used:
            raise CannotJoin(f"{entry} imports {min(again)}, which another entry imports, too.")
        parts |= used
        memory.save(entry, ContentFile(text.encode()))
    served = {name: place for name, place in paths.items() if name not in parts}
    return served | {entry: (memory, entry) for entry in ENTRIES}


def join(entry: str, read: Read) -> tuple[str, set[str]]:
    """Return the text of an entry that includes its parts, and the names of these parts."""
    return _sheets(entry, read) if entry.endswith(".css") else _modules(entry, read)


def _sheets(entry: str, read: Read) -> tuple[str, set[str]]:
    parts: set[str] = set()
    folder = posixpath.dirname(entry)

    def sheet(match: re.Match[str]) -> str:
        name = _beside(entry, match[1])
        parts.add(name)
        text = read(name)
        if OTHER.search(text):
            raise CannotJoin(f"{name} imports a sheet, which only {entry} may.")
        return ADDRESS.sub(lambda address: posixpath.relpath(_beside(name, address[0]), folder), text)

    return SHEET.sub(sheet, read(entry)), parts


def _modules(entry: str, read: Read) -> tuple[str, set[str]]:
    """Wrap imported modules in functions that return their exports, and put them first."""
    done: list[str] = []  # names of modules, in the order in which a browser runs them
    texts: list[str] = []

    def add(name: str, importers: tuple[str, ...]) -> None:
        if name in importers:
            raise CannotJoin(f"{name} imports itself by way of {importers[-1]}.")
        if name in done:
            return
        text = COMMENT.sub("", read(name))
        for match in IMPORT.finditer(text):
            add(_beside(name, match[2]), (*importers, name))
        done.append(name)
        body = IMPORT.sub(lambda match: _imported(_beside(name, match[2]), match[1]), text)
        if name != entry:
            exported = ", ".join(first or second for first, second in EXPORT.findall(body))
            body = (
                f"// {name}\nconst {_variable(name)} = (() => {{\n{EXPORT.sub('', body)}"
                f"return {{ {exported} }};\n}})();\n"
            )
        exports = EXPORT.sub("", body) if name == entry else body
        if other := OTHER.search(exports):
            raise CannotJoin(f"{name} has a form of import or export that is not joined: {other[0]}")
        texts.append(body)

    add(entry, ())
    return "\n".join(texts), set(done) - {entry}


def _imported(name: str, names: str | None) -> str:
    """Return the code that replaces an import; `names` is a text like `first, second as other`."""
    if names is None:
        return ""
    return f"const {{{names.replace(' as ', ': ')}}} = {_variable(name)};\n"


def _variable(name: str) -> str:
    return re.sub(r"\W", "_", name.removesuffix(".js"))


def _beside(name: str, address: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), address))
