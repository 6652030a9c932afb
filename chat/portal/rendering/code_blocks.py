"""Code blocks of an answer: language, highlighting, and the place of a copy button."""

import functools
import html
import time
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.utils.translation import gettext, ngettext
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_by_name
from pygments.token import Comment, Keyword, Name, Number, Operator, String
from pygments.util import ClassNotFound

# Only these languages are highlighted, because their lexers were tested on hostile text.
LANGUAGES = {
    "bash": "Bash",
    "c": "C",
    "cpp": "C++",
    "csharp": "C#",
    "css": "CSS",
    "diff": "Diff",
    "go": "Go",
    "html": "HTML",
    "ini": "INI",
    "java": "Java",
    "javascript": "JavaScript",
    "json": "JSON",
    "kotlin": "Kotlin",
    "php": "PHP",
    "powershell": "PowerShell",
    "python": "Python",
    "r": "R",
    "ruby": "Ruby",
    "rust": "Rust",
    "sql": "SQL",
    "swift": "Swift",
    "toml": "TOML",
    "typescript": "TypeScript",
    "xml": "XML",
    "yaml": "YAML",
}
ALIASES = {
    "sh": "bash", "shell": "bash", "zsh": "bash", "console": "bash", "c++": "cpp", "cs": "csharp",
    "c#": "csharp", "js": "javascript", "jsx": "javascript", "ts": "typescript", "tsx": "typescript",
    "py": "python", "py3": "python", "ps1": "powershell", "rb": "ruby", "rs": "rust", "yml": "yaml",
    "golang": "go", "kt": "kotlin", "svg": "xml", "postgresql": "sql", "jsonc": "json", "patch": "diff",
}  # fmt: skip
LONGEST_COLOURED = 10_000  # characters; longer code is not highlighted
LONGEST_SECONDS = 0.1  # CPU time: some lexers take quadratic time on hostile text
LONGEST_LANGUAGE = 20
MAX_INFO = 200
KINDS: tuple[tuple[Any, str], ...] = (
    (Comment, "c"),
    (Keyword, "w"),
    (Operator.Word, "w"),
    (String, "s"),
    (Number, "n"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Tag, "f"),
    (Name.Attribute, "f"),
    (Name.Builtin, "f"),
)


def code_block(language: str, code: str, *, coloured: bool = True) -> str:
    """Code as HTML, below a line with its language and a copy button, which a script shows."""
    words = language[:MAX_INFO].split(maxsplit=1)
    language = words[0].lower()[:LONGEST_LANGUAGE] if words else ""
    language = ALIASES.get(language, language)
    name = LANGUAGES.get(language, language or gettext("Code"))
    inner = _coloured(language, code) if coloured and len(code) <= LONGEST_COLOURED else html.escape(code)
    lines = code.count("\n") or 1
    counted = ngettext("%(lines)s line", "%(lines)s lines", lines) % {"lines": lines}
    copy = gettext("Copy code")
    label = ", ".join([gettext("Code"), *([name] if language else []), counted])
    return (
        f'<div class="block"><div class="block-head"><span>{html.escape(name)}</span>'
        '<button class="button quiet" type="button" data-copies="code" hidden>'
        f"{copy}</button></div>"
        f'<pre tabindex="0" role="group" aria-label="{html.escape(label)}"><code>{inner}</code></pre>'
        "</div>\n"
    )


def _coloured(language: str, code: str) -> str:
    known = _known().get(language)
    if known is None:
        return html.escape(code)
    lexer = known(stripnl=False, ensurenl=False)
    pieces: list[tuple[str, str]] = []
    until = time.thread_time() + LONGEST_SECONDS
    for token, text in lexer.get_tokens(code):
        if time.thread_time() > until:
            return html.escape(code)
        kind = next((kind for of, kind in KINDS if token in of), "") if text.strip() else ""
        pieces.append((kind, html.escape(text)))
    runs = ((kind, "".join(text for _, text in run)) for kind, run in groupby(pieces, key=itemgetter(0)))
    return "".join(f'<span class="{kind}">{text}</span>' if kind else text for kind, text in runs)


@functools.cache
def _known() -> dict[str, type[Lexer]]:
    found = {}
    for language in LANGUAGES:
        try:
            found[language] = find_lexer_class_by_name(language)
        except ClassNotFound:  # other versions of the library may lack the language
            continue
    return found
