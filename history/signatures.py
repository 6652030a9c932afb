"""The line that marks an answer as a verified one."""

from collections.abc import Mapping
from datetime import date

from django.utils.formats import date_format


def signed(verified: Mapping[str, str] | None) -> str:
    """“Verified by the People Team until 31 March 2027”; empty for an answer that nobody verified."""
    if not verified:
        return ""
    until = date_format(date.fromisoformat(verified["until"]), "j F Y")
    return f"Verified by {verified['by']} until {until}"
