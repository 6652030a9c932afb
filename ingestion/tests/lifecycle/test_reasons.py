"""Reasons why files were not read, in the reader's language; the catalogue has all of them."""

import ast
import importlib
import itertools
import re

import pytest
from django.utils import translation

from chatsite.tests.pseudo_language import speaking_pseudo
from chatsite.tests.server import BASE
from ingestion.documents import BROKEN, LOST
from ingestion.parsing.formats import SIGNATURES
from ingestion.reasons import in_words
from ingestion.tasks import WORKER_DIED

RAISED = {"Unreadable", "UploadRefused", "TemporaryFailure", "EmbeddingError", "_fail", "_delay", "leave_out"}
MODULES = [
    path for path in sorted((BASE / "ingestion").rglob("*.py")) if not {"tests", "migrations"} & {*path.parts}
]
# Placeholders in the sentences, with values that they have in the code.
VALUES = {
    "what": "The file is an image",
    "content": "its content is a program",
    "more": "",
    "known": "PDF, Word",
}
WHATS = {
    "ingestion/quota.py": ("this file has", "the files in it have"),
    "ingestion/indexing/reading.py": ("Files ending in .xyz", "Files without an ending"),
}


def raised():
    """The texts with which files are refused or fail, with example values for numbers and names."""
    for path in MODULES:
        name = str(path.relative_to(BASE))
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        calls = [node for node in nodes if isinstance(node, ast.Call) and called(node) in RAISED]
        if calls:
            module = vars(importlib.import_module(name[:-3].replace("/", ".")))
            for call, what in itertools.product(calls, WHATS.get(name, (VALUES["what"],))):
                for argument in call.args:
                    yield from texts(argument, module | VALUES | {"what": what})


def called(call):
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def texts(node, known):
    """The texts in an argument, if they are literals."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Name(id=name) if isinstance(known.get(name), str):
            yield known[name]
        case ast.IfExp():
            yield from texts(node.body, known)
            yield from texts(node.orelse, known)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="format")) if name in known:
            reasons = "a.exe (files of this kind cannot be read)"
            yield re.sub(
                r"\{(\w+)[^}]*\}", lambda place: reasons if place[1] == "reasons" else "7", known[name]
            )
        case ast.JoinedStr():
            yield "".join(piece(each, known) for each in node.values)


def piece(node, known):
    if isinstance(node, ast.Constant):
        return node.value
    names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    text = next((known[name] for name in names if isinstance(known.get(name), str)), "7")
    return text[:-1] if "SILENT" in names else text


@pytest.fixture
def pseudo():
    with speaking_pseudo():
        yield


def sentences():
    mislabelled = {
        f"The name of the file says Word, but its content is {words}."
        for words in (*SIGNATURES.values(), "a PDF", "something else")
    }
    return sorted({text for text in raised() if " " in text} | {BROKEN, LOST, WORKER_DIED} | mislabelled)


@pytest.mark.slow
def test_the_search_for_reasons_finds_those_in_the_code():
    found = sentences()
    assert len(found) > 60
    assert "The file has 7 pages; at most 7 are read." in found
    assert "The file is empty." in found


def test_each_reason_is_in_the_catalogue(pseudo):
    assert [reason for reason in sentences() if not re.fullmatch("⟦.*⟧", in_words(reason), re.DOTALL)] == []


@pytest.mark.parametrize(
    ("reason", "german"),
    [
        ("The file is empty.", "Die Datei ist leer."),
        (
            "The file has 1,204 pages; at most 1,000 are read.",
            "Die Datei hat 1.204 Seiten; höchstens 1.000 werden gelesen.",
        ),
        (
            "The new file was not accepted; the former one remains. The file unpacks to 7,000 MB; "
            "200 MB are allowed. It was not opened.",
            "Die neue Datei wurde nicht übernommen, die bisherige bleibt. Entpackt hat die Datei 7.000 MB; "
            "200 MB sind erlaubt. Sie wurde nicht geöffnet.",
        ),
        (
            "None of the 2 files in the archive could be read: a.exe (files of this kind cannot be read); "
            "b (it is password-protected).",
            "Keine der 2 Dateien im Archiv konnte gelesen werden: a.exe (Dateien dieser Art können nicht "
            "gelesen werden); b (mit einem Passwort geschützt).",
        ),
        ("Said by a program.", "Said by a program."),
        ("", ""),
    ],
)
def test_numbers_and_reasons_within_reasons_are_translated_too(reason, german):
    with translation.override("de"):
        assert in_words(reason) == german
    with translation.override("en"):
        assert in_words(reason) == reason
