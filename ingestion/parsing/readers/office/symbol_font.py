"""Characters that Word inserts by their position in a symbol font, such as ≥, µ or a ticked box."""

PRIVATE = 0xF000  # Word adds this to most positions in such fonts
LETTERS = dict(
    zip(
        b"ABCDEFGHIKLMNOPQRSTUVWXYZabcdefghiklmnopqrstuvwxyz",
        "ΑΒΧΔΕΦΓΗΙΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηικλμνοπθρστυϖωξψζ",
        strict=True,
    )
)
SYMBOL = {place: chr(place) for place in range(0x20, 0x40)} | LETTERS
SYMBOL |= {
    0x2D: "−", 0xA3: "≤", 0xA5: "∞", 0xAB: "↔", 0xAC: "←", 0xAD: "↑", 0xAE: "→", 0xAF: "↓", 0xB0: "°",
    0xB1: "±", 0xB3: "≥", 0xB4: "×", 0xB6: "∂", 0xB7: "•", 0xB8: "÷", 0xB9: "≠", 0xBB: "≈", 0xCE: "∈",
    0xD6: "√", 0xDE: "⇒", 0xE5: "∑",
}  # fmt: skip
WINGDINGS = {
    0x6E: "■", 0x6F: "☐", 0x71: "❑", 0x76: "❖", 0xA7: "▪", 0xA8: "☐", 0xD8: "➢", 0xDF: "←", 0xE0: "→",
    0xE8: "➔", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
}  # fmt: skip
WINGDINGS_2 = {0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x54: "☒", 0xA3: "☐"}
FONTS: dict[str, dict[int, str]] = {
    "symbol": SYMBOL,
    "wingdings": WINGDINGS,
    "wingdings 2": WINGDINGS_2,
    "wingdings 3": {},
    "webdings": {},
}


def symbol(font: str, code: str) -> str:
    """The character at a position (in hexadecimal digits) in a font; empty if it is unknown."""
    try:
        place = int(code, 16)
    except ValueError:
        return ""
    if (known := FONTS.get(font.lower())) is not None:
        return known.get(place - PRIVATE if place >= PRIVATE else place, "")
    return chr(place) if 0 <= place < PRIVATE else ""
