"""Decodes text whose encoding is unknown."""

import codecs
import re
from collections import Counter
from pathlib import Path

import charset_normalizer

from .language import detect_language

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
GUESSING_BYTES = 100_000
SAMPLE_BYTES = 20_000
CHUNK_BYTES = 1_000_000
ISO_2022 = b"\x1b$B"
DECLARED = re.compile(
    rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w-]{2,30})|\A<\?xml[^>]{0,100}encoding=[\"']([\w-]{2,30})",
    re.IGNORECASE,
)
# Encodings that assign different letters to the same bytes. If charset_normalizer reports one of these,
# `_guessed` ignores the result, and compares encodings by the text's language and the matches of WRONG.
LATIN = re.compile(r"cp125[0247]|iso8859_(?:1|2|3|4|9|10|13|14|15|16)|latin_1|mac_\w+|cp1140|hp_roman8")
CANDIDATES = ("cp1252", "cp1250", "iso8859_2")
SETS = {
    **dict.fromkeys(("czech", "polish", "(slovak)", "(slovenian)", "hungarian", "romanian"), CANDIDATES[1:]),
    **dict.fromkeys(("lithuanian", "(latvian)"), ("cp1257",)),
    "turkish": ("cp1254",),
}
VALID_FOR_BROKEN = 10  # number of valid non-ASCII characters that outweigh one broken character
BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
HIGH = re.compile(rb"[\x80-\xff]+")
CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
# An accent without a letter (ˇ, ˘, ˙, ˛ or ˝) after a letter: probably ², ½ or ¡ of Windows-1252.
LONE_ACCENT = re.compile("[^\\W\\d_][\u02c7-\u02db\u02dd]")
# Typical of text that was decoded with a wrong but similar encoding: a symbol after a letter, or an accented
# capital or a rare small letter, such as ĺ or ř, after a small letter.
# Symbols that may end a word, as in m², only count inside one. The letters ł, ń, ś, ź, ż and ž do not count.
WRONG = re.compile(
    f"{LONE_ACCENT.pattern}|[^\\W\\d_](?:(?![ª®°²³¹º])[\x80-\x9f\u00a1-\u00bf\u00d7\u00f7]|[ª®°²³¹º](?=[^\\W\\d_]))"
    "|[a-z][\u00c0-\u00d6\u00d8-\u00de\u0139-\u0141\u0143\u0145-\u015a\u015c-\u0179\u017b\u017d]"
)


def decode(data: bytes) -> str:
    """Decode a whole file; undecodable bytes become U+FFFD."""
    return data.decode(encoding_of(data), "replace")


def encoding_of(data: bytes, whole: bool = True) -> str:
    """The most likely encoding.

    The byte order mark, UTF-16, ISO-2022-JP, UTF-8 (even with a few broken bytes), and the declaration in
    HTML or XML are tried in this order; otherwise the encoding is guessed. `whole` is False if more bytes
    follow, so that the last character may be incomplete.
    """
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return encoding
    if wide := wide_encoding(data):
        return wide
    if ISO_2022 in data[:GUESSING_BYTES]:
        return "iso2022_jp"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
    except UnicodeDecodeError:
        return "utf-8" if _almost_utf8(data) else _declared(data) or _guessed(data[:GUESSING_BYTES])
    return "utf-8"


def _almost_utf8(data: bytes) -> bool:
    """Whether the text is UTF-8 with a few broken bytes; other encodings rarely look like that."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    return sum(len(run) for run in BEYOND_ASCII.findall(text)) > broken * (1 + VALID_FOR_BROKEN)


def encoding_of_file(path: Path) -> str:
    """The encoding of a file, which is read in chunks."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        head = file.read(GUESSING_BYTES)
        encoding = encoding_of(head, whole=len(head) < GUESSING_BYTES)
        if encoding != "utf-8":
            return encoding
        file.seek(0)
        while chunk := file.read(CHUNK_BYTES):
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                return encoding_of(chunk, whole=False)
    return encoding


def wide_encoding(data: bytes) -> str:
    """The variant of UTF-16 that bytes without a byte order mark look like; otherwise empty.

    At least nine tenths of the characters must have one of two high bytes below 0x20, because most texts use
    only one or two scripts.
    """
    sample = data[: GUESSING_BYTES // 10 & ~1]
    if b"\0\0" in {sample[place : place + 2] for place in range(0, len(sample), 2)}:
        return ""
    for half, name in ((sample[1::2], "utf-16-le"), (sample[0::2], "utf-16-be")):
        blocks = Counter(byte for byte in half if byte < 0x20 and byte not in b"\t\n\r")
        if half and sum(count for _, count in blocks.most_common(2)) >= len(half) * 0.9:
            return name
    return ""


def text_encoding(declared: str) -> str:
    """Python's name of a declared encoding. Raises LookupError.

    Text that is declared as ISO-8859-1 or ASCII is usually Windows-1252, a superset, which browsers assume.
    """
    name = codecs.lookup(declared).name
    return "cp1252" if name in ("iso8859-1", "ascii") else name


def _declared(data: bytes) -> str:
    """The encoding declared in HTML or XML, if Python supports it and it is not UTF-8, -16 or -32."""
    found = DECLARED.search(data[:2_000])
    try:
        name = text_encoding((found[1] or found[2]).decode()) if found else ""
        b"".decode(name or "ascii")  # fails for a codec that is not an encoding of text, such as “hex”
    except (LookupError, UnicodeError):
        return ""
    return "" if name.startswith("utf") else name


def _guessed(data: bytes) -> str:
    runs = [len(run) for run in HIGH.findall(data)]
    if sum(runs) > len(runs) * 1.6 or CONTROLS.search(data):
        best = charset_normalizer.from_bytes(data).best()
        if best and not LATIN.fullmatch(best.encoding):
            return best.encoding
    # Detectors often fail if most non-ASCII letters are isolated; the words around them are a better clue.
    sets = SETS.get(detect_language(data.decode("cp1252", "replace")), CANDIDATES)
    sample = data[:SAMPLE_BYTES]
    fitting = min(sets, key=lambda name: len(WRONG.findall(sample.decode(name, "replace"))))
    # The language of a short table may be wrong. No language writes accents without letters.
    return "cp1252" if LONE_ACCENT.search(sample.decode(fitting, "replace")) else fitting
