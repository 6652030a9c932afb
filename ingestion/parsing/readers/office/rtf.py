"""Rich text: text and tables of an RTF file.

Headings are found by outline level, style, bold type, or form (see `lone_titles`); embedded objects are
skipped.
"""

import codecs
import re
from dataclasses import dataclass, replace
from pathlib import Path

from chatsite.superscripts import superscript
from ingestion.parsing.readers.lone_titles import is_title
from ingestion.parsing.readers.outline import Outline
from ingestion.parsing.sections import Contents, Limits, Unreadable, space_for

from .symbol_font import FONTS, PRIVATE, symbol

TOKEN = re.compile(
    rb"\\([A-Za-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^A-Za-z])|([{}])|[\r\n]+|([^\\{}\r\n]+)"
)
NO_TEXT = frozenset(
    b"fonttbl colortbl stylesheet listtable listoverridetable rsidtbl generator xmlnstbl themedata info pict "
    b"object objdata datastore header headerl headerr headerf footer footerl footerr footerf fldinst "
    b"latentstyles colorschememapping mmathPr revtbl annotation atnid atnauthor bkmkstart bkmkend pgdsctbl "
    b"private wgrffmtfilter userprops docvar filetbl shppict nonshppict sp panose falt".split()
)
SIGNS = {
    b"tab": " ", b"line": "\n", b"emdash": "\u2014", b"endash": "\u2013", b"lquote": "\u2018",
    b"rquote": "\u2019", b"ldblquote": "\u201c", b"rdblquote": "\u201d", b"bullet": "\u2022", b"emspace": " ",
    b"enspace": " ", b"qmspace": " ",
}  # fmt: skip
FIRST_OF_UNICODE = 0x100  # the first character that is not a byte
FONT_CHARACTERS = 100  # of the name of a font
SYMBOLS = 2  # the character set of fonts such as Symbol and Wingdings
CHARSETS = {
    77: "mac_roman", 128: "cp932", 129: "cp949", 134: "gbk", 136: "cp950", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip
STYLE = re.compile(rb"\{\\s(\d{1,4})([^{}]{0,600})\}")
CONTROL = re.compile(rb"\\[A-Za-z]+-?\d* ?")
STARRED = frozenset([b"shpinst", b"shptxt"])  # groups that contain text although \* marks them as optional
STRIKES = (b"strike", b"striked")
STYLES_BYTES = 500_000
MAX_DEPTH = 1_000
BOLD_LEVEL = 9  # level of a heading that is only a bold paragraph
TOO_DEEP = "The file's groups are nested too deeply."


@dataclass(slots=True)
class _State:
    """The state that a group inherits from its parent."""

    skipped: bool = False
    hidden: bool = False
    bold: bool = False
    raised: bool = False
    struck: bool = False
    unicode_skip: int = 1
    encoding: str = "cp1252"
    symbol_font: str = ""


def read(path: Path, limits: Limits) -> Contents:
    """Read a rich text file by heading. Raises Unreadable."""
    return contents_of(path.read_bytes(), limits)


def contents_of(data: bytes, limits: Limits) -> Contents:
    reader = _Reader(data, limits)
    reader.outline.find_lone_titles()
    return reader.outline.titled(reader.title)


class _Reader:
    """Parses the file in one pass into `outline`."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        self.outline = Outline(limits)
        self.title = ""
        self._limits = limits
        self._levels = _levels(data)
        self._encoding = "cp1252"  # of the document, for fonts without a known character set
        self._encodings: dict[int, str] = {}
        self._fonts: dict[int, str] = {}  # names
        self._symbol_fonts: set[int] = set()
        self._font = 0
        self._state = _State()
        self._stack: list[_State] = []
        self._bytes = bytearray()
        self._words: list[str] = []
        self._all_bold: bool | None = None
        self._level: int | None = None
        self._in_table = False
        self._row: list[str] = []
        self._rows: list[list[str]] = []
        # For each cell of the row, whether it continues the cell above; and the same for the next definition.
        self._continued: list[bool] = []
        self._continues = False
        # Number of bytes to skip, which replace the preceding \u character in programs without Unicode.
        self._skip = 0
        self._star = False
        self._fonts_at = self._title_at = 0
        self._parse(data)
        if self._row:  # the file ends inside a table
            self._property(b"cell", None)
            self._property(b"row", None)
        self._in_table = False
        self._paragraph()
        self._end_table()

    def _parse(self, data: bytes) -> None:
        place = 0
        begins = False  # whether a group has just begun
        while place < len(data):
            match = TOKEN.match(data, place)
            if match is None:  # a backslash at the end of the file
                return
            place = match.end()
            word, number, code, symbol, brace, text = match.groups()
            if word == b"bin":
                place += max(int(number or 0), 0)
            elif brace:
                self._group(brace)
            elif word:
                self._control(word, int(number) if number else None)
            elif code:
                self._add(bytes([int(code, 16)]))
            elif symbol:
                # StarOffice also writes \* before properties, where it has no meaning.
                if symbol != b"*" or begins:
                    self._symbol(symbol)
            elif text:
                self._add(text)
            begins = brace == b"{" or (begins and text is not None and not text.strip())

    def _group(self, brace: bytes) -> None:
        self._flush()
        self._star, self._skip = False, 0
        if brace == b"{":
            if len(self._stack) >= MAX_DEPTH:
                raise Unreadable(TOO_DEEP)
            self._stack.append(self._state)
            self._state = replace(self._state)
        elif self._stack:
            self._state = self._stack.pop()
            if len(self._stack) < self._fonts_at:
                self._fonts_at = 0
            if len(self._stack) < self._title_at:
                self._title_at = 0

    def _control(self, word: bytes, number: int | None) -> None:
        state = self._state
        self._flush()
        self._skip = 0
        if word == b"fonttbl":
            self._fonts_at = len(self._stack)
        elif word == b"title":
            # If a title has letters outside the code page, Word writes it twice, the second time in Unicode.
            self._title_at, state.skipped, self.title = len(self._stack), False, ""
            return
        if self._fonts_at:
            self._font_control(word, number)
        if self._star or word in NO_TEXT:
            state.skipped = state.skipped or word not in STARRED
            self._star = False
        elif word in (b"par", b"sect", b"page", b"column"):
            self._paragraph()
        elif word == b"u" and number is not None:
            self._put(self._character(number & 0xFFFF))
            self._skip = state.unicode_skip
        elif word in SIGNS:
            self._put(SIGNS[word])
        else:
            self._property(word, number)

    def _font_control(self, word: bytes, number: int | None) -> None:
        if word == b"f" and number is not None:
            self._font = number
        elif word == b"fcharset" and number in CHARSETS:
            self._encodings[self._font] = CHARSETS[number]
        elif word == b"fcharset" and number == SYMBOLS:
            self._symbol_fonts.add(self._font)

    def _property(self, word: bytes, number: int | None) -> None:
        state = self._state
        if word == b"ansicpg":
            try:
                self._encoding = state.encoding = codecs.lookup(f"cp{number}").name
            except LookupError:
                state.encoding = self._encoding
        elif word == b"f" and not self._fonts_at and number is not None:
            state.encoding = self._encodings.get(number, self._encoding)
            name = self._fonts.get(number, "").strip("; ").lower()
            state.symbol_font = name if number in self._symbol_fonts and name in FONTS else ""
        elif word == b"uc":
            state.unicode_skip = min(max(number or 0, 0), 8)
        elif word in (b"b", b"v", b"deleted", *STRIKES, b"plain"):
            on = number != 0
            state.bold = on if word == b"b" else False if word == b"plain" else state.bold
            state.hidden = on if word in (b"v", b"deleted") else False if word == b"plain" else state.hidden
            state.raised = state.raised and word != b"plain"
            state.struck = on if word in STRIKES else False if word == b"plain" else state.struck
            state.symbol_font = state.symbol_font if word != b"plain" else ""
        elif word in (b"super", b"up", b"nosupersub", b"sub", b"dn"):
            state.raised = word in (b"super", b"up") and number != 0
        elif word == b"pard":
            self._level, self._in_table = None, False
        elif word in (b"intbl", b"trowd", b"clvmrg", b"cellx"):
            self._table_property(word)
        elif word == b"outlinelevel" and number is not None and number < 9:
            self._level = number + 1
        elif word == b"s" and number in self._levels:
            self._level = self._levels[number]
        elif word in (b"cell", b"nestcell"):
            self._row.append(self._take())
            self._all_bold = None
        elif word in (b"row", b"nestrow"):
            self._end_row()
            self._in_table = self._in_table and word == b"nestrow"

    def _table_property(self, word: bytes) -> None:
        if word == b"clvmrg":
            self._continues = True
        elif word == b"cellx":
            self._continued.append(self._continues)
            self._continues = False
        else:
            self._in_table = True
            if word == b"trowd":
                self._continued, self._continues = [], False

    def _end_row(self) -> None:
        """Add the row; a cell that continues the cell above it has the text of that cell."""
        row, self._row = self._row, []
        above = self._rows[-1] if self._rows else []
        if len(self._continued) == len(row) == len(above):
            cells = zip(self._continued, above, row, strict=True)
            row = [upper if continues else own for continues, upper, own in cells]
        self._rows.append(row)

    def _symbol(self, symbol: bytes) -> None:
        if symbol == b"*":
            self._star = True
        elif symbol == b"~":
            self._flush()
            self._put("\u00a0")
        elif symbol == b"_":
            self._flush()
            self._put("-")
        elif symbol in b"\\{}":
            self._add(symbol)
        elif symbol in b"\r\n":
            self._paragraph()

    def _add(self, data: bytes) -> None:
        if self._skip:
            dropped = min(self._skip, len(data))
            self._skip -= dropped
            data = data[dropped:]
        self._bytes += data

    def _flush(self) -> None:
        if self._bytes:
            text = bytes(self._bytes).decode(self._state.encoding, "replace")
            if self._state.symbol_font:
                text = "".join(map(self._character, self._bytes))
            self._bytes.clear()
            self._put(text)

    def _character(self, code: int) -> str:
        """The character with this code; in a symbol font, that of the position."""
        font = self._state.symbol_font
        is_symbol = font and (code < FIRST_OF_UNICODE or code >= PRIVATE)
        return symbol(font, f"{code:x}") if is_symbol else chr(code)

    def _put(self, text: str) -> None:
        name = self._fonts.get(self._font, "")
        # Groups within the group of a font do not contain its name.
        if 0 < self._fonts_at >= len(self._stack) - 1 and len(name) < FONT_CHARACTERS:
            self._fonts[self._font] = name + text
        if self._title_at:
            self.title += text
        elif self._state.struck and not (self._state.skipped or self._state.hidden):
            self._words.append(space_for(text))
        elif not (self._state.skipped or self._state.hidden):
            self._words.append(superscript(text) if self._state.raised else text)
            if text.strip():
                self._all_bold = self._state.bold and self._all_bold is not False

    def _take(self) -> str:
        self._flush()
        text = "".join(self._words).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        self._words.clear()
        return text

    def _paragraph(self) -> None:
        if self._in_table:
            self._put(" ")
            return
        text = self._take().strip()
        bold, self._all_bold = self._all_bold, None
        if not text:
            return
        self._end_table()
        if self._level is not None:
            self.outline.heading(self._level, text)
        elif bold and is_title(text):
            self.outline.heading(BOLD_LEVEL, text)
        else:
            self.outline.paragraph(text)

    def _end_table(self) -> None:
        if self._rows:
            self.outline.table(self._rows)
        self._rows = []


def _levels(data: bytes) -> dict[int, int]:
    """The heading levels of styles, by style number."""
    start = data.find(b"{\\stylesheet")
    found = {}
    for match in STYLE.finditer(data, start, start + STYLES_BYTES) if start >= 0 else ():
        name = CONTROL.sub(b"", match[2]).strip(b" ;").lower()
        if name.startswith(b"heading ") and name[8:9].isdigit():
            found[int(match[1])] = int(name[8:9])
    return found
