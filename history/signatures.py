"""The signature line of a verified answer."""

from collections.abc import Mapping
from datetime import date

from django.utils.formats import date_format
from django.utils.translation import gettext


def signed(verified: Mapping[str, str] | None) -> str:
    """The line, such as “Verified by the People Team until 31 March 2027”.

    Empty for an answer that is not verified. If a different question was asked, the line also names the
    question for which the answer was written.
    """
    if not verified:
        return ""
    until = date_format(date.fromisoformat(verified["until"]), gettext("j F Y"))
    words = gettext("Verified by %(person)s until %(day)s")
    if question := verified.get("question"):
        words = gettext("Verified by %(person)s until %(day)s, for the question “%(question)s”")
        return words % {"person": verified["by"], "day": until, "question": question}
    return words % {"person": verified["by"], "day": until}
