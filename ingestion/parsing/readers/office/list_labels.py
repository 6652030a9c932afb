"""Numbers in the labels of headings and list items, as word processors write them."""

LABEL_CHARACTERS = 60
MAX_LETTERS = 26 * 4  # after z come aa, bb and so on; larger numbers are written in digits
MAX_ROMAN = 3_999
ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


def formatted(number: int, kind: str) -> str:
    """A number in the format that Word calls `decimal`, `decimalZero`, `lowerLetter` and so on."""
    text = str(number)
    if kind == "decimalZero":
        text = text.zfill(2)
    elif kind == "ordinal":
        text = f"{text}."
    elif kind.endswith("Letter") and 0 < number <= MAX_LETTERS:
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif kind.endswith("Roman") and 0 < number <= MAX_ROMAN:
        text, rest = "", number
        for value, letters in ROMAN:
            text += letters * (rest // value)
            rest %= value
    return text.upper() if kind.startswith("upper") else text
