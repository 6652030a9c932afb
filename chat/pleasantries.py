"""Recognises greetings, thanks and questions about the site itself, and provides the answers."""

import re
from dataclasses import dataclass

from ingestion.search.tokens import plain_words


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of message: a message with any of `words` gets `answer`."""

    words: frozenset[str]
    answer: str


# German and English. The first kind with a word of the message applies.
_KINDS = (
    _Kind(
        frozenset({"welchedokumente"}),
        "Die Seite „Dokumente“ führt alle Dokumente auf, die Sie lesen dürfen. Fragen Sie mich nach"
        " allem, was darin steht.",
    ),
    _Kind(
        frozenset({"whichdocuments"}),
        "The page “Documents” lists every document that you can read. Ask me about anything in them.",
    ),
    _Kind(
        frozenset({"werbistdu"}),
        "Guten Tag! Diese Website beantwortet Fragen aus den Dokumenten, die Sie lesen dürfen, und nennt zu"
        " jeder Antwort die Quellen. Was möchten Sie wissen?",
    ),
    _Kind(
        frozenset({"whoareyou"}),
        "Hello! This site answers questions from the documents that you can read, and names the sources of"
        " each answer. What would you like to know?",
    ),
    _Kind(
        frozenset({"danke", "dankeschön", "dank", "merci"}),
        "Gern geschehen. Fragen Sie einfach, wenn Sie noch etwas wissen möchten.",
    ),
    _Kind(
        frozenset({"tschüss", "tschüß", "wiedersehen", "ciao"}),
        "Auf Wiedersehen!",
    ),
    _Kind(
        frozenset({"hallo", "guten", "servus", "moin", "grüß", "grüezi"}),
        "Guten Tag! Fragen Sie mich nach allem, was in den Dokumenten steht, die Sie lesen dürfen.",
    ),
    _Kind(
        frozenset({"thanks", "thank", "thx", "cheers"}),
        "You’re welcome. Just ask if there is anything else you would like to know.",
    ),
    _Kind(frozenset({"bye", "goodbye"}), "Goodbye!"),
    _Kind(
        frozenset({"hi", "hello", "hey"}),
        "Hello! Ask me about anything in the documents you can read.",
    ),
)
# Words that may accompany the words above.
_BESIDE = frozenset(
    """
    a lot all again and auch auf bis dahin day das dein deine dir du everyone für good gott great gut
    have help herzlichen hilfe ich ihnen ihre ihren im in informationen info information is it just
    leider liebe lieben lieber many mal me much my nice now ok okay perfect perfekt please prima sehr so
    super schon schön schönen tag morgen abend mittag the there this tausend und very vielen vielmals
    was well wir you your besten answer antwort that s die for alles klar wonderful wunderbar
    """.split()  # noqa: SIM905 (easier to read than a list of strings)
)
_WHICH_DOCUMENTS = re.compile(
    r"\b(?:what|which|how many) (?:documents|files|sources) (?:do you (?:have|know)|are (?:there|available)"
    r"|can (?:i|you) (?:read|see|search|use))\b|\bwhat can i ask(?: you)?(?: about)?\b"
)
_WELCHE_DOKUMENTE = re.compile(
    r"\b(?:welche|wie viele) (?:dokumente|dateien|unterlagen|quellen)"
    r" (?:gibt es|hast du|haben sie|kennst du|kennen sie|kann ich (?:lesen|sehen|einsehen))\b"
    r"|\bwas kann ich(?: (?:dich|sie))?(?: alles)? fragen\b"
)
MAX_CHARACTERS = 80
_GOOD_DAY = re.compile(r"\bgood (?:morning|afternoon|evening|day)\b")
_HOW_ARE_YOU = re.compile(r"\b(?:how are you(?: today)?|wie geht (?:es|s)(?: (?:dir|ihnen|euch))?)\b")
_WHO_ARE_YOU = re.compile(
    r"\b(?:who|what) are you\b|\bwhat (?:can|do) you do(?: for me)?\b|\bhow can you help(?: me)?\b"
    r"|\bwhat (?:is this (?:site|website|page)|does this (?:site|website|page) do)\b"
)
_WER_BIST_DU = re.compile(
    r"\b(?:und )?(?:wer|was) (?:bist du|sind sie|seid ihr)\b"
    r"|\bwas (?:kannst du|können sie)(?: für mich tun)?\b"
    r"|\b(?:wie|wobei) (?:kannst du|können sie) mir helfen\b|\bwas ist das für eine (?:seite|website)\b"
)
# Questions about the site itself, which no document answers, each with the word that replaces it.
_ABOUT_THE_SITE = (
    (_WHICH_DOCUMENTS, "whichdocuments"),
    (_WELCHE_DOKUMENTE, "welchedokumente"),
    (_WHO_ARE_YOU, "whoareyou"),
    (_WER_BIST_DU, "werbistdu"),
)
ANSWERS = tuple(kind.answer for kind in _KINDS)


def answer_to(message: str) -> str:
    """A friendly line in the language of the message; empty if it may ask about the documents."""
    if len(message) > MAX_CHARACTERS:
        return ""
    text = _HOW_ARE_YOU.sub("", _GOOD_DAY.sub("hello", plain_words(message)))
    for question, word in _ABOUT_THE_SITE:
        text = question.sub(word, text)
    words = {*text.split()}
    if not words <= _BESIDE.union(*(kind.words for kind in _KINDS)):
        return ""
    return next((kind.answer for kind in _KINDS if kind.words & words), "")
