"""The sentence below a quoted table that says how many rows of the source are shown.

It is stored in English, like all texts that the site adds to answers, and shown in the reader's language.
"""

import re

from django.utils.translation import gettext, gettext_noop

SHOWN_OF_TOTAL = gettext_noop("This shows %(shown)s of %(total)s rows; the source has the whole table.")
SHOWN_OF_MORE = gettext_noop("This shows only %(shown)s of the rows; the source has the whole table.")
ROWS_SHOWN = re.compile(
    r"This shows (?:(?P<shown>\d{1,3}) of (?P<total>\d{1,7}) rows|only (?P<some>\d{1,3}) of the rows)"
    r"; the source has the whole table\."
)


def notice(shown: int, total: int) -> str:
    """The sentence; `total` is 0 if the table's length is not known."""
    return (SHOWN_OF_TOTAL if total else SHOWN_OF_MORE) % {"shown": shown, "total": total}


def translated(text: str) -> str | None:
    """The sentence in the reader's language; None for any other text."""
    match = ROWS_SHOWN.fullmatch(text)
    if match is None:
        return None
    if match["total"]:
        return gettext(SHOWN_OF_TOTAL) % match.groupdict()
    return gettext(SHOWN_OF_MORE) % {"shown": match["some"]}
