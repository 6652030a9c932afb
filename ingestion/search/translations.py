"""Translates words of a question between German and English, to find documents in both.

The translations come from a short built-in list and, for other words, from the site's dictionary.
"""

import functools
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from .dictionary import Dictionary, dictionary
from .rough_stems import stem, stems
from .stems import german_stem
from .tokens import plain_words, search_text

# German function words.
_GERMAN = frozenset(
    """
    ab aber alle allem allen aller alles als am an andere anderen auch auf aus bei beim bekomme bekommen
    bekommt bin bis bist bitte bleibe bleiben bleibt brauche brauchen braucht da dabei dafür damit dann
    daran darauf das dass dazu dem den denn der des deshalb dich die dir doch dort du durch ein eine
    einem einen einer eines er es etwas euch euer für gegen geht gelten genau genug gibt gilt habe haben
    hat hier hinter hinzu ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist jede jedem jeden
    jeder jedes jemand kann kein keine keinen können könnte lassen machen macht man mehr mein meine
    meinem meinen meiner mich mir mit muss müssen musste nach nein nicht noch nur ob oder ohne pro schon
    sehe sehen sehr sein seine seinem seinen seiner seit sich sie sieht sind so soll sollen sollte sonst
    tun über um und uns unser unsere unserem unseren unter vom von vor wann war wäre warum was weil
    welche welchem welchen welcher welches wem wen wenn wer werde werden wie wieder will wir wird wo
    wohin womit wurde zu zum zur zwischen
    """.split()  # noqa: SIM905 (a list of words reads as one)
)
# PostgreSQL's English stop words, except “yourselves” and parts of contractions (“don”, “s”, “t”).
_ENGLISH = frozenset(
    """
    i me my myself we our ours ourselves you your yours yourself he him his himself she her hers herself
    it its itself they them their theirs themselves what which who whom this that these those am is are
    was were be been being have has had having do does did doing a an the and but if or because as until
    while of at by for with about against between into through during before after above below to from
    up down in out on off over under again further then once here there when where why how all any both
    each few more most other some such no nor not only own same so than too very can will just should
    now
    """.split()  # noqa: SIM905
)
_GRAMMAR = {"german": _GERMAN, "english": _ENGLISH}
# English content words that are also German function words
HOMOGRAPHS = frozenset({"also", "bin", "die", "hat", "man", "war"})
_ASKING = {
    "german": frozenset({"darf", "dürfen", "viele", "vielen", "vieler", "wieviel"}),
    "english": frozenset({"many", "much"}),
}
# For each language, words that only its questions have
_DISTINCTIVE = {
    "german": _GERMAN - _ENGLISH - HOMOGRAPHS | _ASKING["german"],
    "english": _ENGLISH - _GERMAN | _ASKING["english"],
}
_ASKED = (
    (" wie viele", "how many"),
    (" wieviele", "how many"),
    (" wie viel ", "how much"),
    (" wieviel ", "how much"),
    (" wie lang", "how long"),
    (" wie oft", "how often"),
    (" wie hoch", "how much"),
    (" bis wann ", "by when"),
    (" wann ", "when"),
    (" wo ist ", "where is"),
    (" wo ", "where"),
    (" wer ", "who"),
    (" wem ", "who"),
    (" wen ", "who"),
)

# Verbs that follow the counted thing, translated as “do”: “how many weeks of leave do partners have”.
_VERBS = frozenset(
    """
    hat habe haben hast bekomme bekommen bekommt gibt gelten darf kann können muss müssen
    """.split()  # noqa: SIM905 (a list of words reads as one)
)
# Verbs that are translated because the meaning of a question depends on them: “When do I get my pay?”
_PLAIN_VERBS = {
    **dict.fromkeys(("bekomme", "bekommen", "bekommt", "kriege", "krieg", "kriegen", "erhalte"), "get"),
    **dict.fromkeys(("brauche", "brauchen", "braucht", "benötige"), "need"),
}
# Units at the end of a compound (Urlaubstage); the translation in the list may omit them.
_UNITS = {"tage": "days", "tagen": "days", "wochen": "weeks", "stunden": "hours", "monate": "months"}

# Last parts of compounds that are less distinctive than the first part (Urlaubsgeld).
_WEAK_ENDS = frozenset(
    {
        *_UNITS,
        "tag",
        "zeit",
        "zeiten",
        "geld",
        "jahr",
        "stunde",
        "woche",
        "plan",
        "kraft",
        "kräfte",
        "kräften",
    }
)
_LINKS = ("", "s", "n", "en", "es", "er")  # letters that may join the parts of a compound
MIN_PART = 3  # letters in each part of a compound
MIN_DICTIONARY_PART = 4  # letters; shorter parts would match too many words
MAX_COMPOUND = 40  # letters of a compound
_SAME = 3  # initial letters that a part must have in common with a word of the list
MAX_TRANSLATED = 64  # words of a question that are translated

_HOW = re.compile(r" wie (?:viel(?:e[nr]?)?|lange?|oft|hoch) ")
_CAPITAL = re.compile(r"\b[^\W\d_a-zäöüß]\w*")

LIST = Path(__file__).with_suffix(".txt")
MAX_TRANSLATIONS = 6  # translations of one word


def translations_of(word: str) -> tuple[str, ...]:
    """All words in the built-in list's translations of `word`; usually empty."""
    return _words(_known().get(word, ()))


@functools.lru_cache(maxsize=20_000)
def translations_of_form(word: str) -> tuple[str, ...]:
    """The words of a word's translations. The word may be inflected, or a compound (see `_of_compound`)."""
    found = dictionary()
    return _words((*_phrases_of_form(word), *(found.german_of(word) if found else ())))


def _words(phrases: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(" ".join(phrases).split()))


def _phrases_of_form(word: str) -> tuple[str, ...]:
    """Like `translations_of_form`, but phrases (“pay day”), and no German from the dictionary."""
    if len(word) > MAX_COMPOUND:
        return ()
    if found := _of_list(word):
        return found
    known = dictionary()
    return (
        (known.english_of(word) if known else ())
        or _of_compound(word)
        or (_of_parts(word, known) if known else ())
    )


def _of_list(word: str) -> tuple[str, ...]:
    """The list's phrases for a word, which may be inflected."""
    return _known().get(word) or _by_stems().get(german_stem(word)) or ()


def _of_compound(word: str) -> tuple[str, ...]:
    """The list's phrases for the most distinctive part of a German compound."""
    of_stems = _by_stems()
    beginnings = _beginnings()
    if word[:_SAME] not in beginnings:
        return ()
    for cut in range(MIN_PART, len(word) - MIN_PART + 1):  # try the longest last part first
        last = word[cut:]
        if last[:_SAME] not in beginnings:
            continue
        firsts = (word[: cut - len(link)] for link in _LINKS if word[:cut].endswith(link))
        first = next((each for each in firsts if len(each) >= MIN_PART and german_stem(each) in of_stems), "")
        if first and german_stem(last) in of_stems:
            return of_stems[german_stem(first if last in _WEAK_ENDS else last)]
    return ()


def _of_parts(word: str, known: Dictionary) -> tuple[str, ...]:
    """The dictionary's phrases for both parts of a German compound, joined: “ferry route”."""
    # Try the longest last part first.
    for cut in range(MIN_DICTIONARY_PART, len(word) - MIN_DICTIONARY_PART + 1):
        if not (lasts := known.english_of(word[cut:])):
            continue
        for link in _LINKS:
            first = word[: cut - len(link)]
            if len(first) < MIN_DICTIONARY_PART or not word[:cut].endswith(link):
                continue
            if firsts := known.english_of(first):
                return tuple(f"{before} {after}" for before in firsts[:2] for after in lasts[:2])
    return ()


def english_of(word: str) -> str:
    """The list's first English word for a German word; empty if none, or if the word is also English."""
    return _first_english().get(word, "")


@functools.lru_cache(maxsize=50)  # a search needs it several times
def language_of(question: str) -> str:
    """“german” or “english”: the language with more distinctive words in the question; empty if neither."""
    words = {*plain_words(question).split()}
    only = {language: words & distinctive for language, distinctive in _DISTINCTIVE.items()}
    language, other = sorted(only, key=lambda each: -len(only[each]))
    return language if len(only[language]) > len(only[other]) else ""


def without_grammar(words: Sequence[str], language: str) -> list[str]:
    """The content words of a question in this language; all words if it has none."""
    grammar = _GRAMMAR.get(language, frozenset())
    return [word for word in words if word not in grammar] or list(words)


def stems_of_question(question: str) -> frozenset[str]:
    """The stems of a question's words, without function words of its language."""
    language = language_of(question)
    if language != "german":
        return stems(question)
    return stems(" ".join(without_grammar(search_text(question, stored=False).split(), language)))


def is_german(question: str) -> bool:
    """Whether a question is German, or consists only of German words in the list."""
    return language_of(question) == "german" or all(map(english_of, plain_words(question).split()))


def question_in_english(question: str, held: Collection[str] = ()) -> str:
    """A German question's question word and content words in English; empty for other questions.

    `held` has the stems of passages that may contain the answer; translations with these stems are preferred,
    and those from the dictionary must have them. A word without a translation is kept if it is also English,
    contains other characters than letters, or begins with a capital letter and so may be a name.
    """
    if not is_german(question):
        return ""
    words = plain_words(question)
    asked = next((english for german, english in _ASKED if german in f" {words} "), "")
    is_counted = asked in ("how many", "how much")
    capitals = plain_words(" ".join(_CAPITAL.findall(question))).split()
    named: list[str] = []
    content = _HOW.sub(" ", f" {words} ").split()[:MAX_TRANSLATED]
    for place, word in enumerate(content):
        if word in _VERBS and is_counted and named:
            named.append("do")
        elif word in _PLAIN_VERBS:
            named.append(_PLAIN_VERBS[word])
        elif word not in _GERMAN and word not in _ASKING["german"]:
            unit = next((end for end in _UNITS if word.endswith(end)), "")
            named += [_UNITS[unit]] if unit else []
            others = () if word in {unit, *_english_words()} else _phrases_of_form(word)
            in_held = [each for each in others if all(stem(part) in held for part in each.split())]
            # Avoid a translation that a later word also has: “Wann wird das Gehalt gezahlt?” should become
            # “when is the salary paid”, not “the pay paid”.
            following = {stem(other) for each in content[place + 1 :] for other in in_english([each])}
            fit = [each for each in in_held if following.isdisjoint(map(stem, each.split()))]
            # A dictionary has many meanings of a word: only use one that occurs in the passages.
            others = others if not dictionary() or _of_list(word) or _of_compound(word) else ()
            if chosen := next(iter((*fit, *in_held, *others)), ""):
                named += chosen.split()
            elif word != unit and (word in capitals or word in _english_words() or not word.isalpha()):
                named.append(word)
    return " ".join(filter(None, (asked, *dict.fromkeys(named))))


def in_english(words: Sequence[str]) -> list[str]:
    """The words of a German question in English; words without a translation are left out."""
    return list(
        dict.fromkeys(
            other
            for word in words[:MAX_TRANSLATED]
            for phrase in _phrases_of_form(word)[:1]
            for other in phrase.split()
        )
    )


@functools.cache
def _known() -> Mapping[str, tuple[str, ...]]:
    """The list's translations of each word, from German to English and from English to German."""
    known: dict[str, dict[str, None]] = {}
    for germans, phrases in _lines():
        for each in germans:
            known.setdefault(each, {}).update(dict.fromkeys(phrases))
        for word in _words(phrases):
            known.setdefault(word, {}).update(dict.fromkeys(germans))
    return {word: tuple(others)[:MAX_TRANSLATIONS] for word, others in known.items()}


@functools.cache
def _by_stems() -> Mapping[str, tuple[str, ...]]:
    """The list's English words and phrases by the stem of the German word."""
    known: dict[str, dict[str, None]] = {}
    for germans, phrases in _lines():
        for each in germans:
            known.setdefault(german_stem(each), {}).update(dict.fromkeys(phrases))
    return {word: tuple(others)[:MAX_TRANSLATIONS] for word, others in known.items()}


@functools.cache
def _beginnings() -> frozenset[str]:
    return frozenset(each[:_SAME] for germans, _ in _lines() for each in germans)


@functools.cache
def _english_words() -> frozenset[str]:
    return frozenset(word for _, phrases in _lines() for word in _words(phrases))


@functools.cache
def _first_english() -> Mapping[str, str]:
    words = [(germans, _words(phrases)[0]) for germans, phrases in reversed(_lines())]
    english = _english_words()
    return {each: first for germans, first in words for each in germans if each not in english}


@functools.cache
def _lines() -> Sequence[tuple[list[str], list[str]]]:
    """The lines of the list: German words, and English words and phrases."""
    found = []
    for line in LIST.read_text(encoding="utf-8").splitlines():
        german, colon, english = line.partition(":")
        if colon and not line.startswith("#"):
            phrases = [plain_words(phrase) for phrase in english.split()]
            found.append(([plain_words(each) for each in german.split(",")], phrases))
    return found
