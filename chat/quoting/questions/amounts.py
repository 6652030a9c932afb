"""The kind of amount that a question asks for, and whether a text has such an amount.

The kinds are durations, frequencies, deadlines, times and money; if a question asks for another amount, any
number answers it. Only English and German are recognised.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ingestion.search.rough_stems import held_stems, stem, stems

COUNTED_WITHIN = 2  # words that are searched after a number, plus one for each word of the counted thing
MAX_COLUMN = 120  # characters that are searched before a number for the name of its column
CLAUSE = 100  # characters that are searched after a number

# “What do I do when …” does not ask for a time.
_WHEN = r"(?:\A\s*|[?.,;:!–-] |\b(?:and|or|know|me|us|say|so|ask|exactly|from) )when(?: |'s\b|\?|\Z)"
_AMOUNT = re.compile(
    rf"\bhow (many|much|long|often|old|far|fast|high|large|big|early|late|soon)\b|{_WHEN}"
    r"|\b(?:until|till|by|since) when\b|\bwhich year\b"
    r"|\bwhat (year|date|time|percentage|number|amount|day|score)\b"
    r"|\b(what|which)\b[^?]{0,40}\b(minimum|maximum|rate|limit|length|size|age|price|cost|fee|deadline|share|salary)\b"
    r"|\bwie ?(viel(?:e[nr]?)?|lange|oft|hoch|alt|schnell)\b|\bwann\b",
    re.IGNORECASE,
)
_HOW_MANY = re.compile(r"\b(?:how many|how much|wie ?viel(?:e[nr]?)?)((?: \w+){1,4})", re.IGNORECASE)
_WIE_VIELE = re.compile(r"\b[Ww]ie ?viel(?:e[nr]?)?((?: [a-zäöüß]+){0,2} [A-ZÄÖÜ]\w+)")
_VERB = re.compile(
    r" (?:is|are|was|were|do|does|did|can|may|must|should|will|would|has|have|had|ist|sind|hat|habe|haben"
    r"|darf|kann|muss|bekomme|gibt)\b.*",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![A-Z]-)\b\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|half(?= (?:an?|of|the|price)\b)|two[- ]thirds"
    r"|hundreds?|thousands?|millions?|daily|"
    r"weekly|monthly|yearly|once|twice|several|none|eine[mnrs]?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf"
    r"|zwölf|(?:drei|vier|fünf|sech|sieb|acht|neun)zehn|zwanzig|dreißig|(?:vier|fünf|sech|sieb|acht|neun)zig|hundert"
    r"|tausend|millionen?|einmal|zweimal|hälfte|drittel|zweidrittel\w{0,20}|täglich|wöchentlich|monatlich|jährlich)\b",
    re.IGNORECASE,
)
# The number of a list item, or of a paragraph: “(1)No person may …”; not “six (6) months”.
_ITEM = re.compile(r"(?:(?<=\s)|\A)\d{1,2}[.)] (?=[^\W\d])|(?:(?<=[.;:] )|\A)\(\d{1,2}\) ?(?=[^\W\d])")
_WORDS = (
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|(?:drei|vier|fünf|sech|sieb|acht|neun)zehn|zwanzig|dreißig"
    r"|(?:vier|fünf|sech|sieb|acht|neun)zig|eine?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf"
)
# Not “ein Mitglied”, in which “ein” is an article.
_COUNT = re.compile(rf"\b(?:\d[\d.,]*|(?!eine?\b)(?:{_WORDS}))(?!\w)", re.IGNORECASE)
_EACH_NUMBER = re.compile(rf"\d+(?:[.,:]\d+)*|\b(?:{_WORDS})\b", re.IGNORECASE)
_DIGITS = {
    word: str(value)
    for words in (
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
        " seventeen eighteen nineteen twenty",
        "ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn"
        " siebzehn achtzehn neunzehn zwanzig",
    )
    for value, word in enumerate(words.split(), 1)
}
_DIGITS |= {
    word: f"{tens}0"
    for words in (
        "thirty forty fifty sixty seventy eighty ninety",
        "dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    )
    for tens, word in enumerate(words.split(), 3)
}
_DIGITS["eine"] = "1"
_ONE = frozenset({"a", "an", "per", "pro"})
_UNIT = (
    r"(?:second|minute|hour|day|night|week|month|quarter|year|fortnight)s?"
    r"|(?:Sekunde|Minute|Stunde|Woche)n?|(?:Tag|Monat|Jahr)(?:en?)?|Nächten?"
)
_DAYS = r"(?:calendar|consecutive|working|business|full|whole|complete)"
_MEASURED = rf"(?:[ -]?(?:{_UNIT}|%|€|pounds?|euros?|dollars?|percent|per cent|Prozent|[ap]\.?m\.?)(?!\w))"
_BARE_NUMBER = re.compile(
    r"(?<![£$€§\d.,:#-])(?<!§ )(?<!\bNr\. )(?<!\bAbs\. )(?<!\bsection )"
    rf"(?:\d+(?:[.,]\d+)*|\b(?!eine?\b)(?:{_WORDS}|none|no one|several)\b)(?![\d:]|[.)] )(?!{_MEASURED})",
    re.IGNORECASE,
)
_DURATION = re.compile(
    rf"\b(\d+|an?|(?:per|pro)(?= \w{{3,10}}:)|{_WORDS})(?: \(\d{{1,4}}\))?[ -](?:{_DAYS} )?({_UNIT})\b"
    r"(?! (?:ago|ahead|earlier|later|prior|before|after|in advance)|['’]? notice)",
    re.IGNORECASE,
)
# “Ten paid sick days”, “Days: up to 5”; not “six months in advance” or “longer than one year”.
_LENGTH_OF_TIME = re.compile(
    rf"(?<!than )\b(?:\d[\d.,]{{0,8}}|an?|{_WORDS})"
    rf"(?:[ -](?!(?:per|an?|each|every|pro|im)\b)[\w()]{{1,30}}){{0,3}}[ -](?:{_UNIT})\b"
    r"(?! (?:ago|ahead|earlier|later|prior|before|in advance|vorher|im Voraus)|['’]? notice)"
    rf"|\b(?:{_UNIT})\b[^:;]{{0,40}}: (?:up to |at least )?\d",
    re.IGNORECASE,
)
_AGE = re.compile(r"\b(\d{1,3})(?:[ -]years?[ -]olds?|[ -]?jährig\w{0,2})\b", re.IGNORECASE)
_YEARS = ("year", "jahr")
_WHETHER = re.compile(
    r"(?:\A|[,;:] )(?:can|may|must|do|does|am|is|are|darf|kann|muss|brauche)"
    r" (?:i|we|you|my|ich|wir|man|mein\w{0,2})\b",
    re.IGNORECASE,
)
_FOR_A_TIME = re.compile(rf"\bfor (\d+|an?|{_WORDS}) ({_UNIT})\b", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[;.:!?](?=\s|\Z)")
_COLUMN = re.compile(r"(?:\A|; )([^;:]{1,100}): (?:up to |at least )?\Z")  # the name before a cell of a row

_LENGTH = (
    rf"\b(?:\d[\d.,]{{0,12}}|half an?|an?|several|{_WORDS})(?:[ -][\w()]{{1,30}}){{0,2}}[ -](?:{_UNIT})\b"
    rf"|\b(?:{_UNIT}): \d"
    r"|\b\d[\d.,]{0,12} ?(?:characters|letters|words|pages|met(?:re|er)s?|cm|km|m|miles|feet|Zeichen)\b"
    r"|\b(?:permanent(?:ly\b|(?! \w))|indefinite|unlimited|unbefristet|overnight|expire)"
)
_MONTHS = (
    r"january|february|march|april|may(?= \d)|(?<=\d )may|june|july|august|september|october|november"
    r"|december"
)
_DATE = (
    rf"\b(?:at|by|from|um|ab) (?:\d{{1,2}}|noon|midnight|{_WORDS})\b|"
    r"\b\d{1,2}(?::\d\d|[.:]\d\d ?Uhr| ?[ap]\.?m\b)|\b\d{1,2}(?:st|nd|rd|th)\b|\b(?:19|20)\d\d\b"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:Mo|Di|Mitt|Do|Fr|Sa|So)\w{0,5}(?:tag|woch)s?\b"
    rf"|\b(?:{_MONTHS})\b"
    r"|\b(?:Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember)\b"
    r"|\b(?:within|before|after|until|till|by the|as soon as|immediately|at once)\b"
    r"|\b(?:at the end|start|beginning|end) of\b"
    rf"|\b(?:first|last|next|letzte[nrs]?|erste[nrs]?) (?:[\w-]{{1,20}} )?(?:{_UNIT})\b"
    r"|\b(?:daily|weekly|monthly|quarterly|yearly|annually|every|each)\b"
    r"|\b(?:innerhalb|binnen|vor|nach|bis|spätestens|sofort|unverzüglich|täglich|monatlich|jährlich)\b"
)
_DAY_OR_HOUR = re.compile(
    r"\b\d{1,2}(?:[:.]\d\d|\. ?(?=[A-Z])| ?[ap]\.?m\b|(?:st|nd|rd|th)\b)|\b(?:19|20)\d\d\b"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    rf"|\b(?:{_MONTHS})\b"
    r"|\b(?:(?:Mon|Diens|Donners|Frei|Sams|Sonn)tag|Mittwoch|Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember)s?\b",
    re.IGNORECASE,
)
# Deadlines: the end of the time in which something must be done.
_DEADLINE = (
    r"\b(?:within|innerhalb|binnen)\b:?(?! the time| that period)"
    r"|\b(?:before(?:hand)?|prior to|until|till|later than"
    r"|at the latest|as soon as|immediately|at once|same day|ahead|in advance|notice)\b"
    r"|\b(?:vor(?:her)?|im Voraus|bis|spätestens|sofort|unverzüglich|deadlines?)\b"
    rf"|frist(?:en)?\b[^.;:!?]{{0,40}}\b(?:\d|eine[mr]\b|(?!eine?\b)(?:{_WORDS})\b)"
    r"|\b\d{1,3}[^.;:!?]{1,30}frist(?:en)?\b"
    r"|\bby\b:? (?:the )?(?:\d|\w{3,6}day\b|end\b|start\b|beginning\b|first\b|noon\b|midnight\b"
    rf"|(?:{_WORDS})\b)"
)
_MONEY = (
    r"[£$€]|\b\d[\d.,]{0,12}(?: ?%|p\b| ?(?:prozent|euros?|pounds?|dollars?|times)\b)"
    r"|\b(?:GBP|EUR|USD|CHF|per cent|percent|free|kostenlos|unpaid|waived|no (?:charge|fee))\b"
)
# Frequencies: “weekly”, “every two years”, “once a month”, “the annual review”.
_PERIODICAL = (
    r"(?:daily|weekly|fortnightly|monthly|quarterly|yearly|annual(?:ly)?|täglich\w{0,2}|wöchentlich\w{0,2}"
    r"|monatlich\w{0,2}|jährlich\w{0,2})"
)
_FREQUENCY = (
    rf"\b{_PERIODICAL}\b|\b(?:regularly|always|never|continuously|regelmäßig|stets|\w{{2,12}}mal)\b"
    rf"|\b(?:every|each|per|alle|jede[nrsm]?|pro|je):? (?:[\w-]{{1,20}} ){{0,2}}"
    rf"(?:{_UNIT}|\w{{3,6}}days?|sprints?|terms?|mornings?|evenings?|summers?|winters?)\b"
    rf"|\b(?:\d{{1,4}}|once|twice|times|{_WORDS}) (?:a|an|per|every|each|im|pro) |\b\w{{3,6}}days\b"
)
_EXTENT = (
    rf"{_LENGTH}|\b(?:until|till|within|whole|throughout|duration|deadline|times|bis|innerhalb|binnen|dauerhaft)\b"
    r"|\b\d{1,2}(?::\d\d|[.:]\d\d ?Uhr| ?[ap]\.?m\b)|\b(?:before|after|vor|nach)\b|\bfrom \w{1,12} to \w"
)
_PERIODS = re.compile(rf"\b{_PERIODICAL}\b", re.IGNORECASE)
_HAS_DATE = re.compile(_DATE, re.IGNORECASE)
_HAS_EXTENT = re.compile(_EXTENT, re.IGNORECASE)
_HAS_FREQUENCY = re.compile(_FREQUENCY, re.IGNORECASE)
_HAS_DEADLINE = re.compile(_DEADLINE, re.IGNORECASE)
_HAS_MONEY = re.compile(_MONEY, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of amount, with patterns for questions about it and for texts with it.

    `asking` has the stems of words that only ask for it. `is_number` says whether a sentence that states the
    amount must also have a number.
    """

    asks: re.Pattern[str]
    has: re.Pattern[str]
    asking: frozenset[str] = frozenset()
    is_number: bool = True


_ASKS_WHEN = re.compile(
    rf"{_WHEN}|(?<!\bbis )\bwann\b"
    r"|\b(?:what|which) (?:date|day|time)\b|\bhow (?:early|late|soon)\b",
    re.IGNORECASE,
)
_KINDS = (
    _Kind(
        re.compile(
            r"\bhow (?:long\b(?! before| in advance)|much time (?:do|does|is|will)\b)|\bwie lange\b",
            re.IGNORECASE,
        ),
        _HAS_EXTENT,
        stems("dauert dauern"),
    ),
    _Kind(
        re.compile(r"\bhow (?:often|frequently)\b|\bwie oft\b", re.IGNORECASE),
        _HAS_FREQUENCY,
        is_number=False,
    ),
    _Kind(
        re.compile(
            r"\b(?:by|until|till) when\b|\bbis wann\b|\bdeadline\b|\b(?:stichtag|\w{0,20}frist)\b"
            r"|\bhow (?:far|long|much time|many \w+) (?:ahead|in advance|before(?:hand)?)\b"
            r"|\bhow (?:much|many \w+['’]?) notice\b"
            r"|\bwie (?:lange|weit|viel(?:e[nr]?)? \w+) (?:vorher|im voraus|davor)\b",
            re.IGNORECASE,
        ),
        _HAS_DEADLINE,
        stems("vorher voraus davor ahead advance beforehand"),
    ),
    _Kind(
        _ASKS_WHEN,
        _HAS_DATE,
    ),
    _Kind(
        re.compile(
            r"\bhow much (?:is|are|does|do|can|may|could|should|will|would|must|money|for|it)\b"
            r"(?=[^?]{0,80}\b(?:costs?|pay|paid|spend|fee|price"
            r"|money|charged?|allowance|bonus|fare|tickets?|claim)\b)"
            r"|\bhow much (?:money|does it cost|is it)\b|\bhow much (?:is|are) (?:an?|that)\b"
            r"|\b(?:costs?|prices?|kostet|kosten)\b|\b(?:budget|allowance|stipend|(?<!is there a )fee) for\b"
            r"|\bwhat(?: is|'s|’s)(?: the| our| my)? (?:[\w-]{1,30} ){0,3}"
            r"(?:budget|allowance|stipend|per diem|bonus)\b"
            r"|\bhow (?:much|high|large|big) (?:is|are) [^?]{0,40}"
            r"\b(?:budget|stipend|allowance|bonus|salary|dues|fees?|contributions?|rents?|fines?|penalty"
            r"|penalties|deposits?|tax(?:es)?)\b"
            r"|\bwie (?:hoch|teuer) (?:ist|sind|war|wird) [^?]{0,40}(?:beitr[aä]ge?|gebühr(?:en)?|preise?"
            r"|miete|kaution|pauschale|gehalt|lohn|zuschuss|entgelte?|strafe|budget)\b",
            re.IGNORECASE,
        ),
        _HAS_MONEY,
        stems("pay pays paid spend money charge"),
    ),
)


@dataclass(frozen=True, slots=True)
class AskedAmount:
    """The last amount that a question asks for; any number if `kind` is None.

    `is_explicit` says whether the question asks “how many”, “when”, “which rate” etc. `periods` has the
    question's words such as “daily”, which are not an answer: a text about “the daily meeting” does not say
    how long it takes.
    """

    kind: _Kind | None
    is_explicit: bool
    periods: tuple[str, ...] = ()

    @property
    def asking(self) -> frozenset[str]:
        """The stems of the words that only ask for it: “how much do they pay for …”."""
        return self.kind.asking if self.kind else frozenset()

    @property
    def is_money(self) -> bool:
        return self.kind is not None and self.kind.has is _HAS_MONEY

    def is_in(self, text: str) -> bool:
        if self.kind is None:
            return has_number(text)
        return any(match[0].lower() not in self.periods for match in self.kind.has.finditer(text))

    def is_said(self, text: str) -> bool:
        """Whether a sentence has the amount, with a number if it is a duration or has no `kind`."""
        needs_number = self.kind is None or self.kind.has is _HAS_EXTENT
        return self.is_in(text) and (not needs_number or has_number(text))

    def is_stated(self, text: str) -> bool:
        """Whether a sentence has the amount, and a number if that kind of amount needs one."""
        needs_number = self.kind is None or self.kind.is_number
        return self.is_in(text) and (not needs_number or has_number(text))


def asked_amount(question: str) -> AskedAmount | None:
    """The amount that a question asks for; None for other questions."""
    asked = [(match.end(), kind) for kind in _KINDS for match in kind.asks.finditer(question)]
    other = max((match.start() for match in _AMOUNT.finditer(question)), default=-1)
    place, kind = max(asked, key=lambda each: each[0], default=(-1, None))
    if kind is None and other < 0:
        return None
    periods = tuple(word.lower() for word in _PERIODS.findall(question))
    return AskedAmount(None if place < other else kind, other >= 0, periods)


def has_number(text: str) -> bool:
    """Whether `text` has a number other than the numbers of list items."""
    return bool(_NUMBER.search(_ITEM.sub(" ", text)))


def has_money(text: str) -> bool:
    return bool(_HAS_MONEY.search(text))


def has_duration(text: str) -> bool:
    """Whether `text` has a length of time.

    Notice periods (“two weeks before”) and limits (“longer than a year”) do not count.
    """
    return bool(_LENGTH_OF_TIME.search(_ITEM.sub(" ", text)))


def has_date(text: str) -> bool:
    """Whether `text` has a date, a day of the week, or a time of day."""
    return bool(_DAY_OR_HOUR.search(_ITEM.sub(" ", text)))


def has_bare_number(text: str) -> bool:
    """Whether `text` has a number besides times, durations, percentages, prices and sections."""
    return bool(_BARE_NUMBER.search(_ITEM.sub(" ", text)))


def numbers_of(text: str) -> frozenset[str]:
    """The numbers of a text; number words such as “twelve” are converted to digits."""
    return frozenset(_DIGITS.get(number.lower(), number) for number in _EACH_NUMBER.findall(text))


def stated_durations(question: str) -> frozenset[tuple[str, str]]:
    """The durations in a question (“for a month”): a number and the stem of its unit."""
    return _durations(_FOR_A_TIME, question)


def durations_in(text: str) -> frozenset[tuple[str, str]]:
    """The durations in a text, except distances from an event (“four weeks before”)."""
    return _durations(_DURATION, text)


def measures_in(question: str) -> Mapping[str, frozenset[str]]:
    """Numbers of a question that a text may answer with a limit, each with the stems of its unit.

    These are ages and, in yes-or-no questions, durations: “from 12 to 15 years” may answer a question about
    “my 13-year-old”, and “after the seventh day” may answer one about five days.
    """
    years = frozenset(stem(word) for word in _YEARS)
    found = dict.fromkeys(_AGE.findall(question), years)
    if _WHETHER.search(question):
        for number, word in _DURATION.findall(question):
            for each in (number.lower(), _DIGITS.get(number.lower(), number)):
                found[each] = stems(word)
    return found


def _durations(pattern: re.Pattern[str], text: str) -> frozenset[tuple[str, str]]:
    return frozenset(
        ("1" if number.lower() in _ONE else _DIGITS.get(number.lower(), number), unit)
        for number, word in pattern.findall(text)
        for unit in stems(word)
    )


def counted(question: str) -> list[str]:
    """The stems of the counted thing, in order: “how many days of annual leave do …”."""
    match = _WIE_VIELE.search(question) or _HOW_MANY.search(question)
    words = _VERB.sub("", match[1]).split() if match else []
    return [each for word in words for each in sorted(stems(word))]


def counts(thing: Sequence[frozenset[str]], text: str) -> float:
    """How well a number in `text` counts `thing`, from 0 to 1.

    It is 1 if all words of the thing are near the number, 0 if none is, and above 0.5 if some are. “Four
    weeks” and “Weeks: 4” count weeks; “the 24th week” does not. `thing` has the set of forms of each word.
    """
    best = 0.0
    text = _ITEM.sub(" ", text)
    for number in _COUNT.finditer(text) if thing else ():
        clause = _CLAUSE_END.split(text[number.end() : number.end() + CLAUSE], maxsplit=1)[0]
        near = held_stems(" ".join(clause.split()[: COUNTED_WITHIN + len(thing)]))
        column = _COLUMN.search(text, max(0, number.start() - MAX_COLUMN), number.start())
        if column:
            near |= held_stems(column[1])
        share = sum(bool(forms & near) for forms in thing) / len(thing)
        best = max(best, (1 + share) / 2 if share else 0.0)
    return best
