"""Removes sentences of a question that only say what form the answer should have: “Answer in one sentence.”

Such sentences say nothing about the subject, but a search would look for their words. People write them, and
so do programs that want an answer as JSON. Greetings and thanks are removed, too. English and German are
recognised.
"""

import re

from ingestion.search.rough_stems import weak_stems
from ingestion.search.tokens import plain_words
from ingestion.search.translations import stems_of_question

MAX_WORDS = 40  # a sentence with more words is kept
# At least one word of the sentence must be among these; the others may also be in `_OTHERS`, or numbers.
_FORM = frozenset(
    """
    answer answers respond response reply sentence sentences words word bullet bullets brief briefly short
    shortly concise concisely succinct succinctly json markdown html plaintext emoji emojis codeblock
    paragraph paragraphs detailed summary antworte antworten antwort beantworte beantworten satz sätze
    sätzen stichpunkt stichpunkte stichpunkten stichwort stichworte stichworten stichwörtern stichwörter
    aufzählung kurz knapp kürze wort worten wörter wörtern ausführlich ausführlicher zusammenfassung tldr tl
    thanks thank summarize summarise summarised summarized think explain explained cite sources language
    simple context preamble format formatted facts hi hello yes danke dank hallo erkläre erklären quellen
    quellenangabe quellenangaben ja fass
    """.split()  # noqa: SIM905 (easier to read than a list of strings)
)
_OTHERS = frozenset(
    """
    a about above after all and any as at be below block bold by can characters citations cited code correct
    correctly could detail do don each eight english exactly few fewer five for form four french from german
    give given headings heading i if in include information is it item items italian just keep
    least length less like limit limited line lines list long longer maximum me minimum more most must my
    nine no not number numbered object of on one only or out output outputs per plain please point points
    polite politely possible provide question quote return say schema seven should simply six source spanish
    step steps t table ten terms text than that the this three to tone two under up us use used user using
    valid want with within without would write written you your alles als am an auf aus bitte bei das dass
    de der den dem die du deine deiner dich dir drei ein eine einem einen einer einfach einfache einfacher
    einfachen englisch englischer es fasse formatiere formuliere formulieren frage fünf für gib geben
    höchstens halte halten ich im liste listenform mach machen maximal mich mir mit möglichst meine nenne
    nicht nur nutze oder ohne punkt punkte punkten quelle schreibe schreib schreiben sei sie sprache tabelle
    tabellarisch uns und verständlich verständlicher verwende verwenden vier zehn zeichen zeile zeilen zwei
    deutsch deutscher dr m know so there dear kindly again advance ahead example examples key keys easy
    elaborate good morning day regards best many provided following voraus vielen beispiel beispiele
    beispielen beispiels zahl zahlen nein kurze kurzer kurzen kurzes guten tag morgen grüße freundliche
    schöne leicht leichter leichten auch
    """.split()  # noqa: SIM905 (as above)
)
_ENDS = re.compile(r"(?<=[.!?:;\n])(?=\s)|(?<=[。！？])")


def without_form_wishes(question: str) -> str:
    """The question without form wishes; unchanged if only weak words (`weak_stems`) are left."""
    pieces = _ENDS.split(question)
    kept = "".join(piece for piece in pieces if not _is_form_wish(piece)).strip()
    if len(kept) == len(question.strip()) or not stems_of_question(kept) - weak_stems():
        return question
    return kept


def _is_form_wish(sentence: str) -> bool:
    if "?" in sentence or "？" in sentence:
        return False
    words = plain_words(sentence).split()
    return (
        len(words) <= MAX_WORDS
        and not _FORM.isdisjoint(words)
        and all(word in _FORM or word in _OTHERS or word.isdigit() for word in words)
    )
