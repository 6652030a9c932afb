r"""Renders TeX formulas of an answer, between \( \), \[ \], $ $ or $$ $$, as MathML."""

import functools
import html

from latex2mathml.converter import convert
from markdown_it.rules_inline import StateInline

LONGEST = 2_000  # characters; longer or invalid formulas are shown as text
LATEST = 256
PAIRS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))


def formula(state: StateInline, silent: bool) -> bool:
    """Inline rule: a complete formula."""
    src, start = state.src, state.pos
    if src[start] not in "$\\":
        return False
    for opening, closing in PAIRS:
        if not src.startswith(opening, start):
            continue
        first = start + len(opening)
        end = _end(state, first, closing)
        tex = src[first:end] if end > first else ""
        if not tex.strip() or (opening == "$" and not _is_inline(src, first, end)):
            continue
        if not silent:
            display = opening in ("$$", "\\[")
            state.push("formula", "", 0).meta = {"html": mathml(tex.strip(), display=display)}
        state.pos = end + len(closing)
        return True
    return False


def _end(state: StateInline, first: int, closing: str) -> int:
    """The end of the formula; -1 if there is none, which is searched for once in each text."""
    absent: set[str] = state.env.setdefault("unclosed", set())
    key = f"{closing}{state.src}" if len(state.src) < LONGEST else closing
    if key in absent:
        return -1
    end = state.src.find(closing, first, first + LONGEST)
    if end < 0 and state.src.find(closing, first) < 0:
        absent.add(key)
    return end


def _is_inline(src: str, first: int, end: int) -> bool:
    """Whether a single dollar sign begins a formula, and not an amount of money."""
    after = src[end + 1 : end + 2]
    return (
        not (src[first].isspace() or src[end - 1].isspace() or after.isdigit())
        and "\n\n" not in src[first:end]
    )


@functools.lru_cache(LATEST)
def mathml(tex: str, *, display: bool = False) -> str:
    """A formula as MathML. The converter escapes nothing: callers must sanitize the result."""
    if len(tex) > LONGEST:
        return f"<code>{html.escape(tex)}</code>"
    try:
        # With a space after it, `<` opens no element; spaces mean nothing in a formula.
        found = str(convert(tex.replace("<", "< "), display="block" if display else "inline"))
    except Exception:  # incomplete or invalid: the library raises many kinds of exceptions
        return f"<code>{html.escape(tex)}</code>"
    return f'<span class="formula">{found}</span>' if display else found
