"""Words that were broken at the end of a line."""

import re
from collections.abc import Container

# PDFium returns a hyphen at the end of a line as U+0002 or U+FFFE, even if it has joined that line with the
# next one (in columns). The readers replace such a hyphen with this character.
BREAK = "\U000f00ad"
BROKEN_WORD = re.compile(rf"\b(\w++){BREAK}(?=(\w++))")
# After a hyphen that stands for the rest of a compound ("pre- and post-processing"). "Or", "et" and "ou" may
# also be the rest of a broken word, and only count before another compound.
CONJUNCTION = re.compile(r"(?:und|oder|bzw|beziehungsweise|sowie|and)\b|(?:or|et|ou)\s\w++-", re.IGNORECASE)
# A hyphen joins these pronouns to French verbs. Other words end like them ("ner-vous", "finanzi-elle"), but
# not after the last letters of a verb.
PRONOUN = re.compile(rf"(?:(?<=[sz]{BREAK})[vn]ous|(?<=[td]{BREAK})elles?|[mt]oi|là)\b", re.IGNORECASE)
SINGLE_LETTER = re.compile(rf"(?<!['’])\w{BREAK}")  # not the beginning of a word in "l'é-cole"


def without_breaks(text: str, compounds: Container[str] = (), *, is_hyphenated: bool = True) -> str:
    """The text with its broken words joined.

    The hyphen is kept if the document is not hyphenated, if the word has a hyphen elsewhere (in `compounds`),
    before digits and names, beside a single letter, in suspended compounds, and before French pronouns.
    """
    if BREAK not in text:
        return text

    def joined(match: re.Match[str]) -> str:
        first, second = match.groups()
        if CONJUNCTION.match(text, match.end()):
            return f"{first}- "
        is_kept = (
            not is_hyphenated
            or (second[0].isupper() and not first[-1].isupper())
            or second[0].isdigit()
            or len(second) == 1
            or SINGLE_LETTER.match(text, match.start())
            or PRONOUN.match(text, match.end())
            or f"{first}-{second}".lower() in compounds
        )
        return f"{first}-" if is_kept else first

    return BROKEN_WORD.sub(joined, text).replace(BREAK, "-")
