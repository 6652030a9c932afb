"""A pseudo-language with a translation of every message, and a search for untranslated text on pages."""

import gettext as catalogues
import re
from contextlib import contextmanager
from functools import cache
from html.parser import HTMLParser

from django.conf import settings
from django.test import override_settings
from django.utils import translation
from django.utils.translation import trans_real

PSEUDO = "ar-xb"  # CLDR's code of a mirrored pseudo-language
FORMAT = re.compile(r"[jFMYHi.,: ]+")
ACCENTS = str.maketrans("aeiouncsAEIOUNCS", "àéîöûñçšÀÉÎÖÛÑÇŠ")


@cache
def pseudo(words):
    """Put a text into brackets and add accents, but keep placeholders, elements and date formats."""
    if FORMAT.fullmatch(words):
        return words
    pieces = re.split(r"(%\(\w+\)[sd]|%[sd]|\{\w*\}|<[^>]+>|&\w+;)", words)
    return "⟦" + "".join(p if i % 2 else p.translate(ACCENTS) for i, p in enumerate(pieces)) + "⟧"


class Pseudo(catalogues.NullTranslations):
    """A catalogue that translates every message."""

    def gettext(self, message):
        return pseudo(message.rpartition("\x04")[2])  # the text after the context

    def ngettext(self, singular, plural, number):
        return pseudo(singular if number == 1 else plural)

    def pgettext(self, context, message):
        return pseudo(message)

    def npgettext(self, context, singular, plural, number):
        return pseudo(singular if number == 1 else plural)

    def language(self):
        return PSEUDO

    to_language = language


@contextmanager
def offering_pseudo():
    """Make the pseudo-language available to requests in the block."""
    with override_settings(LANGUAGES=[*settings.LANGUAGES, (PSEUDO, "qx")]):
        trans_real._translations[PSEUDO] = Pseudo()  # Django resets its caches when the setting changes
        yield


@contextmanager
def speaking_pseudo():
    """Translate everything in the block into the pseudo-language."""
    with offering_pseudo(), translation.override(PSEUDO):
        yield


class Words(HTMLParser):
    """Collects the texts of a page, each with the number of open brackets around it."""

    SHOWN = ("aria-label", "title", "placeholder", "alt", "data-hint", "data-lost", "data-copied")
    VOID = ("meta", "link", "input", "br", "img", "use", "rect", "path")
    UNTRANSLATED = ("code", "kbd", "script", "style", "svg", "bdi", "datalist", "pre", "blockquote")

    # Texts of people have a `dir` of their own; the audit log is in English.
    OTHERS = frozenset({("dir", "auto"), ("lang", "en")})

    def __init__(self, page):
        super().__init__()
        self.left_out, self.elements, self.open = [], [], 0
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.elements.append(
                (tag, tag in self.UNTRANSLATED or bool(self.OTHERS.intersection(attributes)))
            )
        for name, value in attributes:
            is_button = name == "value" and ("type", "submit") in attributes
            if (is_button or name in self.SHOWN) and value:
                self.look(value, 0, f"{name}=")

    def handle_endtag(self, tag):
        while tag not in self.VOID and self.elements and self.elements.pop()[0] != tag:
            pass

    def handle_data(self, text):
        if not any(skipped for _, skipped in self.elements):
            self.open = self.look(text, self.open)

    def look(self, text, depth, where=""):
        for piece in re.split("([⟦⟧])", text):
            depth += {"⟦": 1, "⟧": -1}.get(piece, 0)
            if not depth and re.search(
                r"[A-Za-z]{3}", re.sub(r"\bqx\w*|chatsite|https://|Deutsch|English", "", piece)
            ):
                self.left_out.append(where + " ".join(piece.split()))
        return depth
