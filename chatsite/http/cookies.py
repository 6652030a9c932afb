"""Reading cookies in linear time.

Python before 3.11.10 and 3.12.6 takes quadratic time to unquote a cookie with many backslashes
(CVE-2024-7592), here on the event loop and before the caller is authenticated. Django and the standard
library both call `http.cookies._unquote`, which this module replaces; a test checks that it still exists.
"""

import re

from chatsite.dependency_internals import replace_cookie_unquote

_ESCAPED = re.compile(r"\\([0-3][0-7]{2}|.)", re.DOTALL)


def unquote(value: str | None) -> str | None:
    """Remove the quotes around a cookie's value, and resolve escapes such as `\\"` and `\\054`."""
    if value is None or len(value) < 2 or value[0] != '"' or value[-1] != '"':
        return value
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)) if len(found[1]) > 1 else found[1], value[1:-1])


def use_linear_unquote() -> None:
    """Replace the standard library's `_unquote` with :func:`unquote` in this process."""
    replace_cookie_unquote(unquote)
