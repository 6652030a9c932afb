"""Recognises what a question asks for, such as a form, a place or the person who does something.

Only English and German are recognised. In doubtful cases, a text counts as having the thing.
"""

import re
from dataclasses import dataclass

from ingestion.search.rough_stems import stem, stems

AGENT_RADIUS = 6  # maximum number of words between a participle and “by …”, “to …” or “from …”


@dataclass(frozen=True, slots=True)
class Entity:
    """A kind of thing, with patterns for questions about it and for texts with it.

    `asking` has the stems of words that only ask for it. `rare` matches texts that almost certainly have it
    and are therefore preferred.
    """

    asks: re.Pattern[str]
    has: re.Pattern[str]
    asking: frozenset[str]
    rare: re.Pattern[str]


_PHONE_NUMBER = (
    r"\b(?:extension|ext|dial|call|ring|(?:tele)?phone|tel|number|on|durchwahl|telefon|nummer)\b"
    r"[^\d;]{0,30}(?!\d{4}-\d\d-\d\d)\d{3}|\+\d{2}|\b0\d{2,5}[ /-]\d{3}"  # not a date
)
_PHONE = re.compile(_PHONE_NUMBER, re.IGNORECASE)
_CONTACT = re.compile(
    rf"{_PHONE_NUMBER}|\b(?:calls?|called|rings?|phones?|contacts?|informs?|informed|notif(?:y|ies|ied)"
    r"|tells?|told|reports?|reported|reporting|alerts?|asks?|turns? to|speaks? to|talks? to"
    r"|writes? to|advice|e-?mail|ruf\w{0,3}|meld\w{0,4}|informier\w{0,3}|wend\w{0,3})\b|@\w",
    re.IGNORECASE,
)
_FORM = re.compile(r"\b(?:form|formular):? [A-Z\d]", re.IGNORECASE)
_ADDRESS = (
    r"\b[A-Z]{1,2}\d{1,2}[A-Z]? \d[A-Z]{2}\b|\b\d{5} [A-ZÄÖÜ][a-zäöüß]+"
    r"|\b\d{1,5}[a-z]? (?:The )?[A-Z]\w{1,30} (?:Street|Road|Lane|Avenue|Square|Way)\b"
    r"|\b(?:first|second|third|fourth|ground|top|\d{1,2}\w\w) floor\b|\b[Rr]oom \d|\b(?:location|address): "
)
_NAMED_PLACE = (
    r"|\b(?:[Aa]t|[Ii]n|[Oo]n|[Nn]ear|[Oo]pposite|[Bb]ehind|[Nn]ext to|bei|im|am|neben)\b (?:the )?[A-ZÄÖÜ\d]"
    r"|\b(?:website|intranet|portal|app|folder|directory|drive|page)\b|(?<!\w)/\w"
)
_HAS_ADDRESS = re.compile(_ADDRESS)
_HAS_ADDRESS_OR_NAME = re.compile(f"{_ADDRESS}{_NAMED_PLACE}")
_FREE = (
    r"\b(?:free|(?:at no|without) (?:cost|charge)|no charge|own expense"
    r"|kostenlos|kostenfrei|gratis|unentgeltlich)\b"
)
_IS_FREE = re.compile(_FREE, re.IGNORECASE)
_HAS_PRICE = re.compile(
    rf"{_FREE}|\b(?:you|employees?|staff|passengers?|company) (?:must |have to |has to )?pays?\b"
    r"|\b(?:costs?|fees?|deducted|kostet|zahlen|zahlt)\b",
    re.IGNORECASE,
)

_ENTITIES = (
    Entity(  # what the asker must pay for; “An allowance of £8 is paid …” does not say that
        re.compile(
            r"\b(?:have to|must i|need to) pay for\b|\bmuss ich\b[^.?!]{0,80}\b(?:be)?zahlen\b",
            re.IGNORECASE,
        ),
        _HAS_PRICE,
        stems("pay bezahlen zahlen"),
        _IS_FREE,
    ),
    Entity(
        re.compile(
            r"\b(?:(?:tele)?phone number|extension|telefonnummer|rufnummer|durchwahl)\b"
            r"|\b(?:what|which)(?:'s| is)?(?: the)? (?:tele)?phone\b"
            r"|\b(?:what|which|welche[rn]?) num(?:ber|mer)\b[^.?!]{0,80}"
            r"\b(?:call|ring|dial|phone|reach|helps?|anrufen|erreiche)\b"
            r"|\b(?:call|ring|dial|phone|reach|helps?|anrufen|erreiche)\b[^.?!]{0,80}"
            r"\b(?:what|which|welche[rn]?) num(?:ber|mer)\b",
            re.IGNORECASE,
        ),
        _PHONE,
        stems(
            "telephone phone number extension call ring dial reach telefonnummer rufnummer durchwahl nummer"
        ),
        _PHONE,
    ),
    Entity(
        re.compile(
            r"\bwhom? (?:do|can|should|must|could) (?:i|we|you|they|\w{1,20})"
            r" (?:call|ring|phone|contact|inform|notify|tell|report|turn)\b"
            r"|\b(?:wen|wem) (?:ruf|kontaktier|informier|meld)\w{0,3} (?:ich|wir|man)\b"
            r"|\ban wen (?:wend|meld)\w{0,3} (?:ich|wir|man)\b",
            re.IGNORECASE,
        ),
        _CONTACT,
        frozenset(),
        _PHONE,
    ),
    Entity(
        re.compile(r"\b(?:what|which) form\b(?! of\b)|\bwelche[ns]? formular\b", re.IGNORECASE),
        _FORM,
        stems("form formular"),
        _FORM,
    ),
    Entity(
        re.compile(r"\bwhere(?: is| are|'s|s)\b|\bwo (?:ist|sind|liegt|befindet)\b", re.IGNORECASE),
        _HAS_ADDRESS_OR_NAME,
        frozenset(),
        _HAS_ADDRESS,
    ),
    Entity(
        re.compile(r"\bwho(?: is|'s|s) (?:the|our|my)\b|\bwer ist\b", re.IGNORECASE),
        re.compile(r"\b(?:is|are|was|ist|sind)\b|, (?:our|the|unser\w?|der|die) |[:;(]", re.IGNORECASE),
        frozenset(),
        re.compile(r"(?!)"),
    ),
)
_WHERE = re.compile(
    r"(?:\A|[?.,;!] |\band )where\b|\bwhere (?:do|does|can|could|may|must|should|is|are|will)\b"
    r"|\b(?:wo|wohin)\b",
    re.IGNORECASE,
)
_NO_PLACE = (
    r"(?:request|demand|time|writing|advance|full|part|addition|case|cases|general|total|call|behalf|average"
    r"|order|duty|condition|fact|which|that|this|these|those|it|them|him|her|us|me|you|any|all|least|most|once"
    r"|(?:the )?(?:first|last|next|same|following|previous|year|month|week|day|morning|evening|event)s?"
    r"|weekends?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august"
    r"|september|october|november|december)\b"
)
_PLACE = re.compile(
    rf"\b(?:at|in|on|from|into|near|behind|opposite|inside|outside|via|through)\b:? "
    rf"(?:(?:the|a|an|your|our|its|each|every) )?(?!{_NO_PLACE})[^\W\d]"
    r"|\b\d{1,5}[a-z]? (?:The )?(?-i:[A-Z]\w)"  # a house number
    r"|\bto (?:the|your|our|an?) (?!\d)|\b(?-i:to [A-Z])"
    r"|\b(?:online|portal|intranet|website|e-?mail|extension|here)\b|https?:|@"
    r"|(?:\A|; )[^;:]{1,60}: "  # a cell of a row
    r"|\b(?:im|am|beim|bei|zum|zur|in|auf|an|unter|neben) (?:de[rmn] |die |das )?(?-i:[A-ZÄÖÜ])",
    re.IGNORECASE,
)
_WHO = re.compile(
    r"\bwho (?!is\b|are\b|was\b|were\b|has\b|have\b|can\b|may\b|must\b|does\b|do\b|did\b|will\b|should\b)"
    r"([a-z]{4,20})\b",
    re.IGNORECASE,
)
_WER = re.compile(
    r"\bwer (?!ist\b|war\b|hat\b|darf\b|gilt\b|bekommt\b|erhält\b)([a-zäöüß]{3,20}t)\b", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.!?;:]\s")
# The particle of a German separable verb at the end of a sentence: “… leitet es weiter.”
_PARTICLE = re.compile(
    r" (?:ab|an|auf|aus|bei|ein|her|hin|mit|nach|um|vor|weg|weiter|zu|zurück|zusammen)[.,;!?]*\s*\Z",
    re.IGNORECASE,
)
_DUTY = re.compile(r"\b(?:responsib\w{2,7}|in charge|dut(?:y|ies)|jobs?|tasks?|roles?|by)\b", re.IGNORECASE)
_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being) (?:\w{1,20}ly |also |not |first )?(\w{3,20})\b")
_AGENT = re.compile(rf"(?:\W{{1,3}}\w{{1,30}}){{0,{AGENT_RADIUS}}}?\W{{1,3}}(?:by|to|from) \w")
_WORD = re.compile(r"\w+")
_PERSON = re.compile(r"\b(who|whom|whose|wer|wem|wen)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z]\w+")


def entity_asked_for(question: str) -> Entity | None:
    """The kind of thing that the question asks for; None for other questions."""
    return next((entity for entity in _ENTITIES if entity.asks.search(question)), None)


def asks_where(question: str) -> bool:
    return bool(_WHERE.search(question))


def has_place(text: str) -> bool:
    return bool(_PLACE.search(text))


def asks_who(question: str) -> bool:
    """Whether the question has a word such as “who”, and so may ask for a person."""
    return bool(_PERSON.search(question))


def has_name(text: str) -> bool:
    return bool(_NAME.search(text))


def asks_who_does(question: str) -> bool:
    """Whether the question asks who does something: “Who approves overtime?”"""
    return bool(_WHO.search(question))


def deed_asked_for(question: str) -> frozenset[str]:
    """The stem of the verb in a question such as “Who approves overtime?”; empty for other questions."""
    asked = _WHO.search(question)
    return stems(asked[1]) if asked else frozenset()


def has_deed(deed: str, text: str) -> bool:
    """Whether `text` has a word with the stem `deed` that may say what a person does.

    A form in “-ing”, as in “document signing”, only counts in a text with a word such as “responsible”.
    """
    words = [word.lower() for word in _WORD.findall(text) if stem(word.lower()) == deed]
    return any(not word.endswith("ing") for word in words) or bool(words and _DUTY.search(text))


def says_who_does(question: str, text: str) -> bool:
    """Whether `text` has the verb of a question such as “Wer leitet …?”, as a verb or noun.

    A verb with a separated particle is a different one: “leitet … weiter”. True for other questions.
    """
    asked = _WER.search(question)
    if not asked:
        return True
    verb = asked[1].lower()
    root = verb.removesuffix("t").removesuffix("e")
    for sentence in _SENTENCE_END.split(text):
        words = [word.lower() for word in _WORD.findall(sentence)]
        if any(root in word for word in words) and not (
            verb in words and not _PARTICLE.search(question) and _PARTICLE.search(sentence)
        ):
            return True
    return False


def says_who(question: str, text: str) -> bool:
    """Whether `text` may say who does something; “Overtime must be approved” does not.

    Always true for a question that is not like “Who approves overtime?”.
    """
    asked = _WHO.search(question)
    if not asked:
        return True
    verb = stem(asked[1].lower())
    done = [match for match in _PASSIVE.finditer(text) if stem(match[1].lower()) == verb]
    if not done or any(_AGENT.match(text, match.end()) for match in done):
        return True
    active = {asked[1].lower(), asked[1].lower().removesuffix("s")}
    return any(word.lower() in active for word in _WORD.findall(text))
