"""Detects whether a question refers to earlier ones, by its words.

This works in English, German, French, Spanish and Chinese; in other languages, the length decides.
"""

import re
from collections.abc import Sequence

from chat.requests import EarlierMessage
from ingestion.search.stopwords import without_question_words
from ingestion.search.tokens import (
    has_unspaced_script,
    units,
)

FEW_WORDS = 3  # questions of at most this many words are taken to name no subject
FEW_CHARACTERS = 4  # the same limit in characters, for scripts without spaces
FEW_CONTENT_WORDS = (
    2  # questions with at most this many content words and no name may refer to an earlier subject
)
FEW_CONTENT_CHARACTERS = 6

# The beginning of a question that continues another …
_GOES_ON = re.compile(
    r"\s*(?:(?:and|also|but|or|what about|how about|what if"
    r"|und|auch|aber|oder|was ist mit|wie ist es|wie sieht es|und wenn"
    r"|et|mais|ou|aussi|qu['’]en est-il|et si"
    r"|y|pero|o|también|qué tal|y si)\b"
    r"|[¿]\s*(?:y|pero|o|también)\b"
    r"|那么?|还有|另外|而且|以及|但是|可是|如果|要是|它|他们?|她们?|这|其中)",
    re.I,
)
# … or a word that refers back. “Is there a canteen?” has none.
_POINTS_BACK = re.compile(
    r"\b(?:same|instead|it|its|they|them|their|that|those|these|this|(?<!\bis )(?<!\bare )there|then"
    r"|he|she|his|her|davon|dafür|dabei|damit|dazu|darüber|diese[rsmn]?|dieselben?|dort|dann|ihnen|ihre[rnms]?"
    r"|ceci|cela|celui|celles?|ceux|ça|leurs?|là-bas"
    r"|eso|esto|ese|esos|esas|ellos|ellas|allí)\b"
    r"|(?-i:\b(?:sie|er|ihn|ihm)\b)"  # only in lower case, because “Sie” means “you”
    r"|它们?|他们|她们|这个|这些|那个|那些|那里|那边|那时|呢[?？]?\s*\Z",
    re.I,
)


# Words that do not name the subject of a question.
_FUNCTION_WORDS = frozenset(
    """
    a about all also am an and any anybody anyone anything are as at be been before after being but by
    can could did do does doing done else ever every for from get gets getting give given go goes going
    got had happen happened happens has have having he her here him his how i if in into is it its just
    kind let like many may me mean means more most much must my need needed needs new no not of off
    often on one only or other our out over own per please same say says shall she should so some
    somebody someone something sort still take takes tell than that the their them then there these they
    thing things this those to too under until up us use used very want was way we were what when where
    which while who whom whose why will with within without work works would year years month months
    week weeks day days you your yours yes
    ab aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bekomme
    bekommen bekommt bin bis bist bitte brauche brauchen braucht da damit dann das dass dazu dein deine
    dem den denn der des die dies diese dieser doch dort du durch ein eine einem einen einer eines er es
    etwas euch euer für gegen geht genau gibt hab habe haben hast hat hier ich ihm ihn ihnen ihr ihre im
    immer in ins ist jahr jede jeder jedes jemand kann kannst kein keine keinen können könnte lang lange
    machen macht man mehr mein meine meinem meinen meiner mich mir mit monat muss müssen nach nicht noch
    nur ob oder ohne pro sein seine seit sich sie sind so soll sollen sollte sonst tag tage um und uns
    unser unsere unter viel viele vom von vor wann war warum was weg wegen weil welche welchem welchen
    welcher welches wem wen wenn wer werde werden wie wieder wieviel wir wird wirst wo woche wochen
    wofür wohin womit wozu wurde zu zum zur
    au aux avec ce ces cet cette combien comment dans de des du elle en est et faire fait faut il ils je
    la le les leur lui ma mais me mes moi mon ne nos notre nous on ont ou où par pas peut peux plus pour
    pourquoi quand que quel quelle quelles quels qui quoi sa se ses si son sont sur ta te tes toi ton tu
    un une vos votre vous an ans jour jours mois
    al como cómo con cuál cuáles cuándo cuánta cuántas cuánto cuántos del día días dónde el ella en es
    esta está este hacer hay la las lo los me mi mis no nos o para pero por puede puedo qué que quién se
    si son su sus tengo tiene un una uno y ya año años mes
    """.split()  # noqa: SIM905 (a list of words reads as one)
)
_GERMAN = re.compile(
    r"\b(?:der|die|das|den|dem|des|ein|eine[rnms]?|ist|sind|wie|was|wer|wo|wann|gibt|muss|kann)\b", re.I
)
_NAME = re.compile(r"(?<=[^\W\d_] )[A-ZÀ-Þ][\w-]+")  # with a capital letter, inside the question
_CODE = re.compile(r"\b(?:\w*\d\w*|[A-Z]{2,})\b")  # words with digits, or only of capital letters


def leans_on_earlier(question: str) -> bool:
    """Whether the question continues another, refers back, or is too short to name its subject."""
    if _GOES_ON.match(question) or _POINTS_BACK.search(question):
        return True
    if has_unspaced_script(question):
        return len(units(question)) <= FEW_CHARACTERS
    return len(question.split()) <= FEW_WORDS


def may_lean_on_earlier(question: str) -> bool:
    """Whether the question, with few content words and no name, may be about an earlier subject.

    “What is the deadline?” may ask for the deadline of the earlier subject. “Where is the canteen?” does not,
    but has as few words, so the result is True for both.
    """
    if has_unspaced_script(question):
        return len(units(without_question_words(question))) <= FEW_CONTENT_CHARACTERS
    names = _CODE.search(question) or (_NAME.search(question) and not _GERMAN.search(question))
    content = [word for word in units(without_question_words(question)) if word not in _FUNCTION_WORDS]
    return len(content) <= FEW_CONTENT_WORDS and not names


def leaned_on(question: str, earlier: Sequence[EarlierMessage]) -> list[str]:
    """The last earlier question that names its subject; empty if `question` itself does.

    If no earlier question names a subject, the first one is returned. Follow-up questions in between are left
    out: each asks for something else (“and for part-time staff?”, “what if I was ill?”), and together they
    would outweigh the current question.
    """
    asked = [turn.content for turn in earlier if turn.role == "user"]
    if not asked or not leans_on_earlier(question):
        return []
    first = len(asked) - 1
    while first > 0 and leans_on_earlier(asked[first]):
        first -= 1
    return asked[first : first + 1]


def context_of(question: str, earlier: Sequence[EarlierMessage]) -> str:
    """The earlier questions that may name the subject of `question`, as one text.

    They begin with the last one that clearly names a subject, or else with the first. Follow-up questions are
    left out, and so is the question that `leaned_on` returns. The text is empty if that question, or else
    `question` itself, clearly names its own subject.
    """
    standing = [
        turn.content for turn in earlier if turn.role == "user" and not leans_on_earlier(turn.content)
    ]
    asked = question
    if standing and leans_on_earlier(question):
        asked = standing.pop()  # not in the context: it is searched for together with the question
    if not may_lean_on_earlier(asked):
        return ""
    first = len(standing) - 1
    while first > 0 and may_lean_on_earlier(standing[first]):
        first -= 1
    return " ".join(standing[max(first, 0) :])
