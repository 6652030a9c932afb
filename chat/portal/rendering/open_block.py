"""Completes the Markdown of an answer's unfinished block, so that no syntax is visible.

The end of the text is omitted while its meaning is undecided, for instance half of a link, or a list marker
without its item. The delimiter row below a table's header is completed.
"""

import re
from collections import Counter

from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter

UNDECIDED = re.compile(
    r"(?:[-*+]|\d{1,9}[.)]?)?[ \t]*+(?:\[[ xX]?\]?[ \t]*+)?"  # the marker of an item, and of its task
    r"|(?:[-*+]|\d{1,9}[.)])?[ \t]*+#{1,6}[ \t]*+"
    r"|(?:[-*+][ \t]++)?(?:`{1,2}|`{3,}+[^`]*+|~{1,2}|~{3,}+.*+)"
    r"|[-=*_ \t]++|\|[-:| \t]*+|\[\^[\w-]{0,40}\]?:?[ \t]*+"
)
DIVIDER = re.compile(r"(?=[|: \t]*+-)[|:\- \t]++")
# Each pattern inspects only the last characters of the text.
HALVES = (
    re.compile(r"!?\[[^\[\]\n]{0,800}\]?$"),
    re.compile(r"<[A-Za-z/!][^<>\n]{0,500}$"),
    re.compile(r"&[#\w]{0,32}$"),
)
HALF_LINK = re.compile(r"!?\[([^\[\]\n]{0,800})\]\([^()\n]{0,2000}$")
LOOKED_AT = 3_000  # last characters that are searched for half of a link or formula
MARKERS = "*_~`$\\!"
BACKTICKS = re.compile(r"`+")
FORMULA = re.compile(r"\\[(\[]|\$\$?(?=[^\s\d$])")


def closed(text: str, labels: frozenset[str] = frozenset()) -> str:
    """Unfinished Markdown outside of code fences, without its ambiguous end.

    A final `[label]` with one of `labels` is kept, because it is a citation.
    """
    before, lead, rest, above = _last_line(text)
    if rest.startswith("|") and DIVIDER.fullmatch(rest) and above.startswith("|"):
        return before + lead + _divider(above)
    if UNDECIDED.fullmatch(rest):
        text = before.rstrip()
        before, lead, rest, above = _last_line(text)
    else:
        text = before + lead + _without_half(rest, labels)
    if rest.startswith("|") and "|" not in above:
        return f"{text.rstrip(' |')} |\n{lead}{_divider(rest)}"
    return text


def _last_line(text: str) -> tuple[str, str, str, str]:
    """The text before the last line; that line's indentation and rest; the line above without indentation."""
    before, line_end, last = text.rpartition("\n")
    rest = last.lstrip(" \t>")
    above = before.rpartition("\n")[2].lstrip(" \t>")
    return before + line_end, last[: len(last) - len(rest)], rest, above


def _divider(head: str) -> str:
    return "|" + "---|" * (head.strip().strip("|").count("|") + 1)


def _without_half(line: str, labels: frozenset[str]) -> str:
    start = max(0, len(line) - LOOKED_AT)
    fixed, end = line[:start], line[start:]
    if match := HALF_LINK.search(end):
        return fixed + end[: match.start()] + match[1]
    for half in HALVES:
        match = half.search(end)
        if match and not (match[0].endswith("]") and match[0].strip("![]") in labels):
            end = end[: match.start()]
    return (fixed + end).rstrip(MARKERS) if not end.endswith("]") else fixed + end


def close_last_inline(state: StateCore) -> None:
    """Core rule before the inline rule: close code in the last text, and omit half of a formula."""
    if not state.env.get("open"):
        return
    last = next((token for token in reversed(state.tokens) if token.type == "inline"), None)
    if last is None:
        return
    content = last.content
    content += _unclosed_code(content)
    if (place := _unclosed_formula(content)) is not None:
        content = content[:place]
    last.content = state.env["last"] = content


def _unclosed_code(text: str) -> str:
    """The backticks that would close the last code span; empty if it is closed."""
    runs = [match[0] for match in BACKTICKS.finditer(text)]
    left = Counter(runs)
    unclosed, place = "", 0
    while place < len(runs):
        run = runs[place]
        left[run] -= 1
        place += 1
        unclosed = "" if left[run] else run
        while left[run] and not unclosed:
            left[runs[place]] -= 1
            place += 1
            if runs[place - 1] == run:
                break
    return unclosed


def _unclosed_formula(text: str) -> int | None:
    """The start of the last formula, if it has no end."""
    found = None
    for match in FORMULA.finditer(text[-LOOKED_AT:]):
        found = match
    if found is None:
        return None
    start = max(0, len(text) - LOOKED_AT) + found.start()
    opening = found[0]
    closing = {"\\(": "\\)", "\\[": "\\]"}.get(opening, opening)
    rest = text[start + len(opening) :]
    if closing in rest or (opening in "$$" and text[:start].count(opening) % 2):
        return None
    return start


def close_pairs(state: StateInline) -> None:
    """Inline rule of the second pass (`ruler2`): close open emphasis of the block's last text."""
    if not state.env.get("open") or state.src != state.env.get("last"):
        return
    reach = -1
    unclosed = []
    for place, delimiter in enumerate(state.delimiters):
        if delimiter.end >= 0:
            reach = max(reach, delimiter.end)
        elif delimiter.open and place > reach:
            unclosed.append(place)
        elif delimiter.open:
            state.tokens[delimiter.token].content = ""
    for place in reversed(unclosed):
        opener = state.delimiters[place]
        token = state.push("text", "", 0)
        token.content = state.tokens[opener.token].content
        opener.end, opener.close = len(state.delimiters), False
        state.delimiters.append(
            Delimiter(opener.marker, opener.length, len(state.tokens) - 1, -1, open=False, close=True)
        )
