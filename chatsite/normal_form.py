"""Unicode normal forms in linear time.

`unicodedata.normalize` sorts each run of combining marks with an insertion sort: it takes seconds for 40,000
marks, minutes for 500,000, and no other thread runs meanwhile. No language needs more than a few marks on a
letter; the Stream-Safe Text Format of Unicode Standard Annex 15 allows 30.
"""

import functools
import re
import unicodedata
from typing import Literal

Form = Literal["NFC", "NFKC"]

MAX_MARKS = 30  # combining marks in a row; further ones are dropped
_FIRST_MARK = 0x300
# A quick test for a long run of characters that may be marks; it is ten times as fast as normalising.
_BEYOND = f"[{chr(_FIRST_MARK)}-\U0010ffff]"
_MAY_BE_MARKS = re.compile(f"{_BEYOND}{_BEYOND}{{{MAX_MARKS}}}")


def normal_form(form: Form, text: str) -> str:
    """Like `unicodedata.normalize`, but keeps only the first MAX_MARKS combining marks in a row."""
    if text.isascii():
        return text
    if _MAY_BE_MARKS.search(text):
        text = _marks().sub(lambda match: match[0][:MAX_MARKS], text)
    return unicodedata.normalize(form, text)


@functools.cache
def _marks() -> re.Pattern[str]:
    """A pattern for runs of more than MAX_MARKS marks.

    A character counts as a mark if its decomposition begins with a combining mark.
    """
    marks = [
        chr(code)
        for code in (*range(_FIRST_MARK, 0xD800), *range(0xE000, 0x20000))
        if unicodedata.combining(unicodedata.normalize("NFKD", chr(code))[0])
    ]
    # Two classes, because the `re` module compares the characters of a class one by one if any of them has
    # more than 16 bits.
    short = "".join(mark for mark in marks if mark <= "\uffff")
    long = "".join(mark for mark in marks if mark > "\uffff")
    mark = f"(?:[{short}]|(?=[\U00010000-\U0010ffff])[{long}])"
    return re.compile(f"{mark}{{{MAX_MARKS + 1},}}")
