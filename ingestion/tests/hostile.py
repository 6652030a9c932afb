"""A corpus of broken, locked, mislabelled and malicious files, each with the expected outcome."""

import struct
import zipfile
from io import BytesIO

from ingestion.tests import building

READY = ""
DAMAGED = "The file is damaged or incomplete."
PASSWORD = "password-protected"
TOO_MUCH_TEXT = "more text than is read"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
WORDS = ("", "Some words.")
GOOD = "# Good\n\nThe ferry leaves at nine."


def corpus(address):
    """{name: (bytes, part of the reason, or READY)}. A connection to `address` would mean that a link was
    followed.
    """
    return {
        **_bombs(),
        **_xml(address),
        **_locked_and_broken(),
        **_mislabelled(),
        **_pdfs(),
        **_deep(),
        **_texts(),
        **_outside(address),
    }


def _bombs():
    inner = building.package({"a.txt": b"\0" * 30_000_000})
    for _ in range(3):
        inner = building.package({f"{number}.zip": inner for number in range(20)})
    paragraphs = "".join(f"<w:p><w:r><w:t>{number:x}</w:t></w:r></w:p>" for number in range(2_000_000))
    return {
        "bomb.docx": (_docx(**{"word/media/a.bin": b"\0" * 210_000_000}), "200 MB are allowed"),
        "dense.docx": (_docx(**{"word/media/a.bin": b"\0" * 60_000_000}), "times its size; 200 times"),
        "nested.docx": (inner, "its content is something else"),
        "nested-inside.docx": (_docx(**{"word/embeddings/a.zip": inner}), READY),
        "overlapping.docx": (_overlapping(), "200 MB are allowed"),
        "paragraphs.docx": (_document(paragraphs), "allowed|more text"),
        "parts.docx": (_docx(**{f"word/{number}": b"" for number in range(10_001)}), "at most 10,000"),
        "pages.pdf": (building.pdf(*[["a"]] * 501), "The file has 501 pages; at most 500 are read."),
        "cells.xlsx": (
            _sheet('<dimension ref="A1:XFD1048576"/>', _row(1_048_576, "XFD")),
            f"{READY}|longer than",
        ),
        "rows.xlsx": (slow_sheet(), "longer than"),
    }


def slow_sheet():
    """A file of 100 KB that takes longer to read than allowed."""
    return _sheet("", "".join(_row(number, "XFD") for number in range(2, 20_000)))


def _xml(address):
    laugh = '<!DOCTYPE a [<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 20}">' for n in range(12)
    )
    fetch = f'<!DOCTYPE a [<!ENTITY m SYSTEM "{address}/x"><!ENTITY % n SYSTEM "{address}/n">%n;'
    disk = '<!DOCTYPE a [<!ENTITY m SYSTEM "file:///etc/passwd">'
    files = {}
    for kind, start in (("laughs", laugh), ("fetches", fetch), ("reads", disk)):
        for ending, data, part, place in (
            ("docx", building.docx(("", "xyz")), "word/document.xml", "xyz"),
            ("xlsx", building.xlsx({"S": [["a", "b"], ["xyz", "c"]]}), "xl/worksheets/sheet1.xml", "xyz"),
            ("pptx", building.pptx(("T", ["xyz"], "")), "ppt/slides/slide1.xml", "xyz"),
        ):
            changed = _with(data, part, lambda text, s=start, p=place: s + "]>" + text.replace(p, "&m;"))
            files[f"{kind}.{ending}"] = (changed, DAMAGED)
        files[f"{kind}.html"] = (f"{start}]><p>Before &m; after.</p>", READY)
        for ending in ("svg", "xml") if kind == "laughs" else ():
            files[f"{kind}.{ending}"] = (
                f"{start}]><svg>&m;</svg>",
                f"Files ending in .{ending} cannot be read",
            )
    return files


def _locked_and_broken():
    files = {"locked.pdf": (building.pdf(["Secret."], encrypted=True), PASSWORD)}
    locked = OLE + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le")
    whole = {
        "docx": building.docx(*[("", f"Line {number}.") for number in range(300)]),
        "xlsx": building.xlsx({"S": [[f"a{number}", "b"] for number in range(300)]}),
        "pptx": building.pptx(*[(f"T{number}", ["x"], "") for number in range(9)]),
    }
    for ending, data in whole.items():
        files[f"locked.{ending}"] = (locked, PASSWORD)
        files[f"cut.{ending}"] = (data[: len(data) // 2], DAMAGED)
    files["old.docx"] = (OLE + b"\0" * 600, "old Office format")
    files["cut.pdf"] = (building.pdf(["a"] * 9)[:300], "damaged|No text|no pages")
    files["cut.json"] = ('{"a": [1, 2', "not valid JSON (line 1)")
    for ending in ("pdf", "docx", "html", "json", "png"):
        files[f"empty.{ending}"] = (b"", "The file is empty.")
    return files


def _mislabelled():
    return {
        "program.pdf": (
            b"MZ\x90\0" + b"\0" * 500,
            "The name of the file says PDF, but its content is a program.",
        ),
        "page.docx": (b"<html><p>Text</p></html>", "The name of the file says Word"),
        "text.xlsx": (building.docx(WORDS), "The name of the file says Excel"),
        "archive.txt": (building.docx(WORDS), "its content is a ZIP archive"),
        "picture.png": (b"Text.", "The name of the file says image"),
        "nothing": (b"Text.", "Files without an ending cannot be read"),
    }


def names():
    """Files with hostile names, in the same form. The names are made harmless, and the texts are read."""
    names = ["../../evil-up.md", "/etc/evil-root.md", "..\\..\\evil-back.md", "a\0b.md", "c\x1b[2Jd\n.md"]
    names += [f"{'long' * 75}.md", "\u202edm.evil\u202d.md", " .hidden.md ", "<b>bold</b>.md", "\udce4.md"]
    files = dict.fromkeys(names, (GOOD, READY))
    files["annual\u202efdp.exe"] = (GOOD, "Files ending in .exe cannot be read")
    return files


def _pdfs():
    whole = building.pdf(["Some words on a page."])
    return {
        "loop.pdf": (whole.replace(b"/Kids[10 0 R]", b"/Kids[ 2 0 R]"), "damaged|No text|no pages"),
        "parent.pdf": (whole.replace(b"/Type/Page/", b"/Type/Pages/"), "damaged|No text|no pages"),
        "count.pdf": (whole.replace(b"/Count 1>>", b"/Count 99999999>>"), READY),
        "house.pdf": (whole.replace(b"[0 0 595 842]", b"[0 0 9e9 9e9]"), READY),
    }


def _deep():
    return {
        "deep.html": ("<div>" * 50_000 + "text", READY),
        "deep-table.html": ("<table><tr><td>" * 20_000 + "text", READY),
        "deep.json": ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        "deep.md": ("> " * 50_000 + "text", "No text was found|"),
        "deep-list.md": ("\n".join("  " * depth + "- a" for depth in range(500)), READY),
        "deep.docx": (_document("<w:sdt>" * 20_000 + "</w:sdt>" * 20_000), DAMAGED),
        "brackets.md": ("[" * 300_000, "No text was found"),
        "stars.md": ("*a_" * 100_000, READY),
        "comments.html": ("<!--" * 250_000, "No text was found"),
        "tags.html": ("<a " * 300_000 + "b", READY),
    }


def _texts():
    return {
        "line.txt": (b"x" * 50_000_000, TOO_MUCH_TEXT),
        "line.csv": (b"x" * 20_000_000, "longer than 1,000,000 characters"),
        "quote.csv": ('a,b\n1,"never closed\n' + "2,3\n" * 400_000, READY + "|" + TOO_MUCH_TEXT),
        "surrogates.json": ('{"a": "\\ud800 lone"}', READY),
        "surrogates.txt": (b"lone \xed\xa0\x80 half", READY),
        "zeros.txt": (b"\0" * 1_000, "its content is something else"),
        "space.md": (b" \n\n ", "No text was found in the file."),
    }


def _outside(address):
    external = (
        f'<Relationship Id="{{}}" Type="{building.OFFICE}/{{}}" Target="{address}/a" TargetMode="External"/>'
    )
    slides = building.pptx(("T", ["Words."], ""))
    rels = building.RELATIONS.format(external.format("x", "image") + external.format("n", "notesSlide"))
    tags = f'<img src="{address}/i"><link rel=stylesheet href="{address}/c"><iframe src="{address}/f">'
    return {
        "outside.pptx": (_added(slides, **{"ppt/slides/_rels/slide1.xml.rels": rels}), READY),
        "outside.docx": (
            _docx(
                **{
                    "word/_rels/document.xml.rels": building.RELATIONS.format(
                        external.format("t", "attachedTemplate")
                    )
                }
            ),
            READY,
        ),
        "outside.html": (f"<base href='{address}/'><p>Words.</p>{tags}", READY),
        "outside.md": (f"Words. ![a]({address}/m)\n\n<img src='{address}/n'>", READY),
        "climbing.docx": (_docx(**{"../../evil-member.xml": b"x"}), "names that lead out of it"),
    }


def _docx(**parts):
    return building.package(building.docx_parts(WORDS) | parts)


def _document(body):
    parts = building.docx_parts(WORDS)
    whole = parts["word/document.xml"]
    parts["word/document.xml"] = whole.replace("</w:body>", body + "</w:body>")
    return building.package(parts)


def _sheet(before, rows):
    def changed(text):
        return text.replace("<sheetData>", before + "<sheetData>").replace(
            "</sheetData>", rows + "</sheetData>"
        )

    return _with(building.xlsx({"S": [["a", "b"], ["x", "y"]]}), "xl/worksheets/sheet1.xml", changed)


def _row(number, column):
    return f'<row r="{number}"><c r="{column}{number}"><v>1</v></c></row>'


def _with(data, name, change):
    parts = _parts(data)
    parts[name] = change(parts[name].decode())
    return building.package(parts)


def _added(data, **parts):
    return building.package(_parts(data) | parts)


def _parts(data):
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _overlapping():
    """An archive whose directory names one packed member a thousand times."""
    data = building.package({"[Content_Types].xml": b"\0" * 1_000_000, "word/document.xml": b"x"})
    with zipfile.ZipFile(BytesIO(data)) as archive:
        start = archive.start_dir
    end = data.rindex(b"PK\x05\x06")
    first = data[start : data.index(b"PK\x01\x02", start + 4)]
    directory = data[start:end] + first * 1_000
    tail = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 1_002, 1_002, len(directory), start, 0)
    return data[:start] + directory + tail
