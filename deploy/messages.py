"""`make messages`: update the message catalogues. Needs Babel, but not GNU gettext.

Extracts the messages of templates and modules, merges them into locale/*/LC_MESSAGES/django.po, and compiles
the catalogues. Exits with status 1 if a translation is missing, or if a message is inside an f-string. With
`--check`, changes nothing, and also exits with status 1 if a catalogue is out of date.
"""

import ast
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.utils.translation.template import templatize

BASE = Path(__file__).resolve().parent.parent
PACKAGES = ("chat", "chatsite", "history", "ingestion")
KEYWORDS: dict[str, tuple[int | tuple[int, str], ...] | None] = {
    "_": None,
    "ErrorText": (2,),
    "Format": (2,),
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
}
WRITTEN = datetime(2026, 1, 1, tzinfo=UTC)
HEADER = "# Messages of the portal and the API. Written by `make messages`."


def sources() -> Iterator[tuple[str, bytes]]:
    """The path and Python source of each module and template, except tests and migrations.

    Django's `templatize` turns a template into source that calls gettext.
    """
    for package in PACKAGES:
        for path in sorted((BASE / package).rglob("*.py")):
            name = path.relative_to(BASE)
            if not {"tests", "migrations"} & set(name.parts):
                yield str(name), path.read_bytes()
    for path in sorted((BASE / "templates").rglob("*.html")):
        name = path.relative_to(BASE)
        words = templatize(path.read_text(encoding="utf-8"), origin=str(name))
        yield str(name), "\n".join(line.strip() for line in words.splitlines()).encode()


def hidden() -> list[str]:
    """Places of messages inside f-strings, which Babel does not extract before Python 3.12."""
    found = []
    for path, source in sources():
        if path.endswith(".py"):
            texts = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.JoinedStr)]
            calls = [call for text in texts for call in ast.walk(text) if isinstance(call, ast.Call)]
            named = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in KEYWORDS]
            found += [f"{path}:{call.lineno}" for call in named if isinstance(call.args[0], ast.Constant)]
    return found


def extracted() -> Catalog:
    """All messages of the current code."""
    catalog = Catalog(charset="utf-8")
    for path, source in sources():
        options = {"encoding": "utf-8"}
        for _line, message, _comments, context in extract("python", BytesIO(source), KEYWORDS, (), options):
            catalog.add(message, locations=[(path, 0)], context=context)
    return catalog


def written(catalog: Catalog) -> bytes:
    """The text of a .po file, without dates and line numbers, so that only changed messages change it."""
    catalog.header_comment = HEADER
    buffer = BytesIO()
    write_po(buffer, catalog, width=110, omit_header=False, sort_output=True, include_lineno=False)
    return re.sub(
        rb'"(?!Language:|Plural-Forms|MIME|Content)[A-Z][A-Za-z-]+: .*\\n"\n', b"", buffer.getvalue()
    )


def compiled(catalog: Catalog) -> bytes:
    buffer = BytesIO()
    write_mo(buffer, catalog)
    return buffer.getvalue()


def read(path: Path) -> Catalog:
    with path.open("rb") as file:
        catalog = read_po(file, locale=path.parent.parent.name, charset="utf-8")
    catalog.creation_date = catalog.revision_date = WRITTEN  # by default, Babel uses the current time
    return catalog


def untranslated(catalog: Catalog) -> list[str]:
    """Messages whose translation is missing or marked as fuzzy."""
    missing = []
    for message in catalog:
        texts = message.string if isinstance(message.string, tuple | list) else (message.string,)
        if message.id and (message.fuzzy or not all(texts)):
            missing.append(message.id if isinstance(message.id, str) else message.id[0])
    return missing


def main(check: bool) -> int:
    """Update every catalogue, or only check it; returns the exit status."""
    settings.configure(USE_I18N=True)
    template = extracted()
    behind = bool(unseen := hidden())
    for place in unseen:
        sys.stdout.write(f"{place}: a message inside an f-string is not extracted\n")
    for path in sorted((BASE / "locale").glob("*/LC_MESSAGES/django.po")):
        catalog = read(path)
        catalog.update(template, no_fuzzy_matching=True)
        catalog.obsolete.clear()
        missing = untranslated(catalog)
        stale = written(catalog) != path.read_bytes()
        behind = behind or bool(missing) or (check and stale)
        for words in missing:
            sys.stdout.write(f"{path.parent.parent.name}: no translation of {words!r}\n")
        if check and stale:
            sys.stdout.write(f"{path.relative_to(BASE)} is out of date: run make messages\n")
        elif not check:
            path.write_bytes(written(catalog))
            path.with_suffix(".mo").write_bytes(compiled(read(path)))
    return int(behind)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
