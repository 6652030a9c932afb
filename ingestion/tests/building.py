"""Small files of every format, built by hand, so that tests need no program that writes them."""

import io
import struct
import zipfile
from xml.sax.saxutils import escape

END, FREE = 0xFFFFFFFE, 0xFFFFFFFF  # of a chain of sectors in a compound file; no sector or entry
PLACE_OF_SMALL = 1
CONTENT_TYPES = "[Content_Types].xml"
TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>{}</Types>'
)
KIND = "application/vnd.openxmlformats-officedocument"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = (
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    "{}</Relationships>"
)
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
SHOW = "http://schemas.openxmlformats.org/presentationml/2006/main"


def pdf(*pages, title="", encrypted=False):
    """A PDF; each page is a list of lines, or of (size, line)."""
    objects = {1: b"<</Type/Catalog/Pages 2 0 R>>", 3: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"}
    kids = []
    for index, lines in enumerate(pages):
        page, stream = 10 + 2 * index, 11 + 2 * index
        kids.append(f"{page} 0 R")
        body = "BT 50 780 Td " + "".join(
            f"/F1 {size} Tf ({_quoted(text)}) Tj 0 -20 Td " for size, text in map(_sized, lines)
        )
        data = (body + "ET").encode("latin-1")
        objects[page] = (
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {stream} 0 R"
            "/Resources<</Font<</F1 3 0 R>>>>>>"
        ).encode()
        objects[stream] = b"<</Length %d>>stream\n%s\nendstream" % (len(data), data)
    objects[2] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>".encode()
    objects[4] = f"<</Title({_quoted(title)})>>".encode("latin-1")
    trailer = "/Root 1 0 R/Info 4 0 R"
    if encrypted:
        trailer += f"/Encrypt<</Filter/Standard/V 1/R 2/O<{'11' * 32}>/U<{'22' * 32}>/P -4>>/ID[<00><00>]"
    return _with_references(objects, trailer)


def drawn(*streams, meaning="", bookmarks=(), producer=""):
    """A PDF whose pages have these content streams; F1 is plain, F2 bold, F3 italic.

    `meaning` has the characters that "A" and the following letters of F1 stand for; a bookmark is
    (level, title, page), or (level, title, page, height on the page).
    """
    plain = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding%s>>"
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R%s>>" % (b"/Outlines 5 0 R" if bookmarks else b""),
        3: plain % (b"/ToUnicode 6 0 R" if meaning else b""),
        4: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Bold/Encoding/WinAnsiEncoding>>",
        8: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Oblique/Encoding/WinAnsiEncoding>>",
    }
    if meaning:
        codes = "".join(
            f"<{65 + place:02X}> <{letter.encode('utf-16-be').hex()}>\n"
            for place, letter in enumerate(meaning)
        )
        objects[6] = _stream(
            "begincmap 1 begincodespacerange <00> <FF> endcodespacerange\n"
            f"{len(meaning)} beginbfchar\n{codes}endbfchar endcmap"
        )
    for index, stream in enumerate(streams):
        objects[10 + 2 * index] = (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents %d 0 R"
            b"/Resources<</Font<</F1 3 0 R/F2 4 0 R/F3 8 0 R>>>>>>" % (11 + 2 * index)
        )
        objects[11 + 2 * index] = _stream(stream)
    kids = " ".join(f"{10 + 2 * index} 0 R" for index in range(len(streams)))
    objects[2] = f"<</Type/Pages/Kids[{kids}]/Count {len(streams)}>>".encode()
    if bookmarks:
        objects |= _outline(bookmarks, 20 + 2 * len(streams))
    objects[7] = f"<</Producer({producer})>>".encode()
    return _with_references(objects, "/Root 1 0 R/Info 7 0 R")


def tagged(*pages, lefts=(50, 200, 350), split=False, background=False):
    """A PDF with one tagged table over several pages, or with a table on each page if `split`.

    With `background`, the table and its first row have contents of their own, as browsers write them.

    A page has {row: [(tag, column, text)]}, and a row may be on several pages. The tag is "TH" or "TD", or ""
    for text outside of the table; the lines of a text are below each other.
    """
    if split:
        pages = [
            {1000 * index + number: cells for number, cells in rows.items()}
            for index, rows in enumerate(pages)
        ]
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R/MarkInfo<</Marked true>>/StructTreeRoot 5 0 R>>",
        3: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    }
    first = 20 + 2 * len(pages)
    kids = {}  # by row and column: (tag, contents)
    parents = []
    for index, rows in enumerate(pages):
        stream, cells_of_marks, y = "", [], 760
        for number, cells in rows.items():
            height = 0
            for tag, column, text in cells:
                mark = len(cells_of_marks)
                shown = "".join(
                    f"BT /F1 11 Tf 1 0 0 1 {lefts[column]} {y - 14 * line} Tm ({_quoted(words)}) Tj ET\n"
                    for line, words in enumerate(text.split("\n"))
                )
                height = max(height, 14 * len(text.split("\n")))
                if not tag:
                    stream += shown
                    continue
                stream += f"/P <</MCID {mark}>> BDC\n{shown}EMC\n"
                cells_of_marks.append((number, column))
                contents = kids.setdefault((number, column), (tag, []))[1]
                contents.append(f"<</Type/MCR/Pg {10 + 2 * index} 0 R/MCID {mark}>>")
            y -= height + 6
        if background and not index:
            for owner, top in (("table", 700), ("row", 750)):
                stream += f"/P <</MCID {len(cells_of_marks)}>> BDC\n40 {top} 400 20 re f\nEMC\n"
                cells_of_marks.append(owner)
        parents.append(cells_of_marks)
        objects[10 + 2 * index] = (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents %d 0 R/StructParents %d"
            b"/Resources<</Font<</F1 3 0 R>>>>>>" % (11 + 2 * index, index)
        )
        objects[11 + 2 * index] = _stream(stream)
    numbers = sorted({number for number, _ in kids})
    row_object = {number: first + place for place, number in enumerate(numbers)}
    cell_object = {key: first + len(numbers) + place for place, key in enumerate(sorted(kids))}
    for key, (tag, contents) in kids.items():
        body = f"<</Type/StructElem/S/{tag}/P {row_object[key[0]]} 0 R/K[{' '.join(contents)}]>>"
        objects[cell_object[key]] = body.encode()
    rows_of = {}  # by the object of the table
    for number in numbers:
        index = number // 1000 if split else 0
        table = max(cell_object.values()) + index if index else 6
        rows_of.setdefault(table, []).append(f"{row_object[number]} 0 R")
        cells = " ".join(f"{cell_object[key]} 0 R" for key in sorted(kids) if key[0] == number)
        if background and number == numbers[0]:
            cells = f"<</Type/MCR/Pg 10 0 R/MCID {parents[0].index('row')}>> {cells}"
        objects[row_object[number]] = f"<</Type/StructElem/S/TR/P {table} 0 R/K[{cells}]>>".encode()
    if background:
        rows_of[6].insert(0, f"<</Type/MCR/Pg 10 0 R/MCID {parents[0].index('table')}>>")
        cell_object |= {"table": 6, "row": row_object[numbers[0]]}
    for table, rows in rows_of.items():
        objects[table] = f"<</Type/StructElem/S/Table/P 5 0 R/K[{' '.join(rows)}]>>".encode()
    marked = (
        f"{index} [{' '.join(f'{cell_object[key]} 0 R' for key in keys)}]"
        for index, keys in enumerate(parents)
    )
    roots = " ".join(f"{table} 0 R" for table in rows_of)
    objects[5] = f"<</Type/StructTreeRoot/K[{roots}]/ParentTree<</Nums[{' '.join(marked)}]>>>>".encode()
    pages_of = " ".join(f"{10 + 2 * index} 0 R" for index in range(len(pages)))
    objects[2] = f"<</Type/Pages/Kids[{pages_of}]/Count {len(pages)}>>".encode()
    return _with_references(objects, "/Root 1 0 R")


def _stream(text):
    data = text.encode("latin-1")
    return b"<</Length %d>>stream\n%s\nendstream" % (len(data), data)


def _outline(bookmarks, first):
    """The objects of bookmarks: 5 is the root, the others are numbered from `first`."""
    below = {}
    parents = [5]
    for number, (level, *_) in enumerate(bookmarks, first):
        parents = [*parents[: level + 1], number]
        below.setdefault(parents[level], []).append(number)
    objects = {5: f"<</Type/Outlines/First {below[5][0]} 0 R/Last {below[5][-1]} 0 R>>".encode()}
    for parent, numbers in below.items():
        for place, number in enumerate(numbers):
            _, title, page, *height = bookmarks[number - first]
            more = f"/Next {numbers[place + 1]} 0 R" if place + 1 < len(numbers) else ""
            if number in below:
                more += (
                    f"/First {below[number][0]} 0 R/Last {below[number][-1]} 0 R/Count {len(below[number])}"
                )
            view = f"/XYZ 0 {height[0]} 0" if height else "/Fit"
            more += f"/Parent {parent} 0 R/Dest[{8 + 2 * page} 0 R{view}]"
            hexadecimal = f"\ufeff{title}".encode("utf-16-be").hex()
            objects[number] = f"<</Title<{hexadecimal}>{more}>>".encode()
    return objects


def _sized(line):
    return line if isinstance(line, tuple) else (11, line)


def _quoted(text):
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _with_references(objects, trailer):
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    offsets = {}
    for number, body in sorted(objects.items()):
        offsets[number] = out.tell()
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start, size = out.tell(), max(objects) + 1
    out.write(b"xref\n0 %d\n" % size)
    for number in range(size):
        in_use = number in offsets
        out.write(
            b"%010d %05d %s \n" % (offsets.get(number, 0), 0 if in_use else 65535, b"n" if in_use else b"f")
        )
    out.write(f"trailer<</Size {size}{trailer}>>\nstartxref\n{start}\n%%EOF".encode())
    return out.getvalue()


def package(parts):
    """A ZIP archive of {name: text or bytes}."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return out.getvalue()


def replaced(data, old, new):
    """The archive with these bytes replaced in all of its parts."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return package({name: archive.read(name).replace(old, new) for name in archive.namelist()})


def ole(streams):
    """A compound file of {path with slashes: bytes}; each stream is shorter than 4,096 bytes."""
    names = sorted(
        {"/".join(name.split("/")[: n + 1]) for name in streams for n in range(name.count("/") + 1)}
    )
    numbers = {name: number for number, name in enumerate(names, 1)}
    small, chains, starts = b"", [], {}
    for name, data in streams.items():
        starts[name] = len(chains)
        count = -(-len(data) // 64)
        chains += [*range(len(chains) + 1, len(chains) + count), END][:count] if count else []
        small += data.ljust(count * 64, b"\0")
    small = small.ljust(-(-len(small) // 512) * 512, b"\0")

    def entry(name, kind, right=FREE, child=FREE, start=0, size=0):
        raw = (name + "\0").encode("utf-16-le")
        head = raw.ljust(64, b"\0") + struct.pack("<HBB", len(raw), kind, 1)
        return head + struct.pack("<III", FREE, right, child) + bytes(36) + struct.pack("<IQ", start, size)

    def children(name):
        inside = [each for each in names if each.rpartition("/")[0] == name]
        return [numbers[each] for each in inside]

    entries = [
        entry("Root Entry", 5, child=next(iter(children("")), FREE), start=PLACE_OF_SMALL, size=len(small))
    ]
    for name in names:
        beside = children(name.rpartition("/")[0])
        right = next(iter(beside[beside.index(numbers[name]) + 1 :]), FREE)
        last = name.rpartition("/")[2]
        if name in streams:
            entries.append(entry(last, 2, right, start=starts[name], size=len(streams[name])))
        else:
            entries.append(entry(last, 1, right, next(iter(children(name)), FREE)))
    listing = b"".join(entries).ljust(-(-len(entries) // 4) * 512, b"\0")
    chain = struct.pack(f"<{len(chains)}I", *chains)
    chain = chain.ljust(-(-len(chain) // 512) * 512, b"\xff")
    # The sectors in order: their table, the small streams, the table of these, the listing.
    table = [0xFFFFFFFD]
    sizes = [len(part) // 512 for part in (small, chain, listing)]
    for size in sizes:
        table += [*range(len(table) + 1, len(table) + size), END]
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack("<HHHHH6xII", 0x3E, 3, 0xFFFE, 9, 6, 0, 1)
    header += struct.pack("<IIIIIIII", 1 + sizes[0] + sizes[1], 0, 4096, 1 + sizes[0], sizes[1], END, 0, 0)
    header += struct.pack("<108I", *[FREE] * 108)
    return header + struct.pack("<128I", *table, *[FREE] * (128 - len(table))) + small + chain + listing


def outlook(texts, *attachments, numbers=()):
    """A message saved by Outlook: {id of a property: text or bytes}, and its attachments as such messages,
    or as (name, bytes). The id may include the type.

    `numbers` are properties of fixed size, as (id with type, value).
    """
    return ole(_outlook(texts, attachments, numbers, bytes(32)))


def _outlook(texts, attachments, numbers, header):
    fixed = b"".join(struct.pack("<IIQ", key, 6, value) for key, value in numbers)
    streams = {"__properties_version1.0": header + fixed}
    for key, value in texts.items():
        kind, data = ("001F", value.encode("utf-16-le")) if isinstance(value, str) else ("001E", value)
        streams[f"__substg1.0_{key if len(key) > 4 else key + kind}"] = data
    for number, attached in enumerate(attachments):
        folder = f"__attach_version1.0_#{number:08X}"
        if isinstance(attached, dict):
            inner = _outlook(attached, attached.pop("attached", ()), (), bytes(24))
            streams |= {f"{folder}/__substg1.0_3701000D/{name}": data for name, data in inner.items()}
        else:
            streams[f"{folder}/__substg1.0_3707001F"] = attached[0].encode("utf-16-le")
            streams[f"{folder}/__substg1.0_37010102"] = attached[1]
    return streams


def _office(main, kind, parts, overrides=()):
    types = [(main, kind), *overrides]
    override = "".join(
        f'<Override PartName="/{name}" ContentType="{KIND}.{kind}+xml"/>' for name, kind in types
    )
    root = f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="{main}"/>'
    return {CONTENT_TYPES: TYPES.format(override), "_rels/.rels": RELATIONS.format(root)} | parts


def docx_parts(*blocks):
    """(style or "", text), or a table as a list of rows."""
    body = []
    for block in blocks:
        if isinstance(block, list):
            rows = ("".join(f"<w:tc>{_word('', cell)}</w:tc>" for cell in row) for row in block)
            body.append(f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>")
        else:
            body.append(_word(*block))
    document = f'<w:document xmlns:w="{WORD}"><w:body>{"".join(body)}</w:body></w:document>'
    return _office("word/document.xml", "wordprocessingml.document.main", {"word/document.xml": document})


def docx(*blocks):
    return package(docx_parts(*blocks))


def _word(style, text):
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def xlsx(sheets):
    """{name of the sheet: rows}; numbers are numbers."""
    parts, entries, relations, overrides = {}, [], [], []
    for number, (name, rows) in enumerate(sheets.items(), 1):
        lines = "".join(
            f'<row r="{row}">{"".join(_cell(row, column, value) for column, value in enumerate(cells))}</row>'
            for row, cells in enumerate(rows, 1)
        )
        part = f"xl/worksheets/sheet{number}.xml"
        parts[part] = f'<worksheet xmlns="{SHEET}"><sheetData>{lines}</sheetData></worksheet>'
        entries.append(f'<sheet name="{escape(name)}" sheetId="{number}" r:id="r{number}"/>')
        relations.append(
            f'<Relationship Id="r{number}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        )
        overrides.append((part, "spreadsheetml.worksheet"))
    parts["xl/workbook.xml"] = (
        f'<workbook xmlns="{SHEET}" xmlns:r="{OFFICE}"><sheets>{"".join(entries)}</sheets></workbook>'
    )
    parts["xl/_rels/workbook.xml.rels"] = RELATIONS.format("".join(relations))
    return package(_office("xl/workbook.xml", "spreadsheetml.sheet.main", parts, overrides))


def _cell(row, column, value):
    place = f"{chr(65 + column)}{row}"
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def pptx(*slides):
    """Slides as (title, lines, notes); the numbers of the files are in the reverse order of the slides."""
    parts, listed, relations = {}, [], []
    for number, (title, lines, notes) in enumerate(slides, 1):
        part = len(slides) - number + 1
        listed.append(f'<p:sldId id="{255 + number}" r:id="s{number}"/>')
        relations.append(
            f'<Relationship Id="s{number}" Type="{OFFICE}/slide" Target="slides/slide{part}.xml"/>'
        )
        parts[f"ppt/slides/slide{part}.xml"] = _slide("sld", _shape("title", [title]) + _shape("body", lines))
        if notes:
            parts[f"ppt/notesSlides/notes{part}.xml"] = _slide("notes", _shape("body", [notes]))
            note = (
                f'<Relationship Id="n" Type="{OFFICE}/notesSlide" Target="../notesSlides/notes{part}.xml"/>'
            )
            parts[f"ppt/slides/_rels/slide{part}.xml.rels"] = RELATIONS.format(note)
    parts["ppt/presentation.xml"] = (
        f'<p:presentation xmlns:p="{SHOW}" xmlns:r="{OFFICE}"><p:sldIdLst>{"".join(listed)}</p:sldIdLst>'
        "</p:presentation>"
    )
    parts["ppt/_rels/presentation.xml.rels"] = RELATIONS.format("".join(relations))
    return package(_office("ppt/presentation.xml", "presentationml.presentation.main", parts))


def _slide(kind, shapes):
    tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
    return f'<p:{kind} xmlns:p="{SHOW}" xmlns:a="{DRAWING}">{tree}</p:{kind}>'


def _shape(kind, lines):
    text = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in lines)
    return (
        f'<p:sp><p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr><p:txBody>{text}</p:txBody></p:sp>'
    )
