"""Whether two questions ask for the same: equivalent words, numbers, names, negations and question words.

Decides whether an answer written for one is given to the other, so any doubt means no. Supports English and
German; in other languages the words must be equal.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from os.path import commonprefix

from ingestion.search.tokens import plain_words

from .terms.facts import is_german, tokens
from .terms.lexicon import MONTHS, POLES, SYNONYMS
from .terms.words import Kind, Token

MAX_CHARACTERS = 400  # longest question that is compared
MAX_PATTERNS = 20_000  # cached questions
MIN_BASE = 3  # letters of a word without its ending
MIN_BEGINNING = 2  # letters of a beginning by which texts are looked up

_SYNONYMS: dict[str, set[int]] = {}
for _number, _line in enumerate(SYNONYMS):
    for _form in _line.split():
        _SYNONYMS.setdefault(_form, set()).add(_number)

# What comes before the question itself.
_COURTESY = re.compile(
    r"^(?:(?:hi|hello|hey|hallo|guten tag|please|bitte|sorry|excuse me|so|ok|okay)\s+)*"
    r"(?:(?:can|could|would|will) (?:you|anyone|anybody|somebody|someone) (?:please )?"
    r"(?:tell|explain|show|let)(?: me| us)?(?: know| please)?\s+(?:about )?"
    r"|(?:please )?(?:tell|explain|show)(?: to)?(?: me| us)?(?: please)?\s+"
    r"(?=how|what|when|where|who|why|which|if|whether)"
    r"|do you know\s+|does (?:anyone|anybody|somebody|someone) know\s+"
    r"|i (?:would like|want|need|d like) to know\s+|i(?: am|m| was)? wonder(?:ing)?\s+"
    r"|(?:kann|können|könnten|könnte) (?:mir )?(?:sie|du|jemand)(?: mir)?(?: bitte)? sagen\s+"
    r"|(?:ich (?:möchte|würde gern|will) wissen)\s+)?"
)
_ASKS = (  # of matches at the same position the first counts
    ("how much", r"how much|wie ?viel"),
    ("how many", r"how many|wie ?viele"),
    ("how long", r"how long|wie lange?"),
    ("how often", r"how often|how frequently|wie oft|wie häufig"),
    (
        "how far",
        r"how (?:far|old|big|tall|high|deep|fast|soon|large|late|early)"
        r"|wie (?:weit|alt|groß|hoch|tief|schnell)",
    ),
    ("why", r"why|how come|warum|wieso|weshalb|weswegen"),
    (
        "when",
        r"(?:by |until )?when|(?:at |by )?(?:what|which) (?:time|date|day)|(?:bis )?wann|um wie ?viel uhr",
    ),
    ("where from", r"where from|from where|woher"),
    ("where", r"where|wohin|wo"),
    ("by whom", r"by whom|von wem"),
    ("who", r"who|who s|wer"),
    ("whom", r"whom|to whom|wem|wen"),
    ("whose", r"whose|wessen"),
    ("how", r"how|wie|what (?:do|can|should|must) (?:i|we|you) (?:have to )?do (?=to )"),
    ("what", r"what|whats|which|was|welche[mnrs]?"),
)  # fmt: skip
_ASKED = [(kind, re.compile(rf"\b(?:{words})\b")) for kind, words in _ASKS]
_COSTS = frozenset(("cost", "costs", "price", "prices", "fee", "fees", "kostet", "kosten", "preis", "gebühr"))
_YES_OR_NO = re.compile(
    r"^(?:is|are|was|were|am|do|does|did|has|have|had|can|could|may|might|must|shall|should|will|would|need"
    r"|isn t|aren t|don t|doesn t|didn t|can t|won t|if|whether"
    r"|ist|sind|war|waren|bin|hat|haben|habe|kann|können|darf|dürfen|muss|müssen|soll|sollen|wird|werden|gibt|ob)\b"
)
_HAS_TO = re.compile(
    r"\b(?:must|mustn t|have to|has to|had to|need to|needs to|need|needed|required|require|requires"
    r"|necessary|mandatory|obligatory|compulsory|obliged|muss|müssen|musst|nötig|erforderlich|pflicht|soll|sollen)\b"
)
_MAY = re.compile(
    r"\b(?:can|could|may|allowed|permitted|able to|possible|permissible|kann|können|darf|dürfen"
    r"|erlaubt|möglich|gestattet)\b"
)
_BEING = re.compile(r"\b(?:is|are|was|were|be|been|being|gets?|wird|werden|wurde|wurden)\b")
_PAST = re.compile(r"\b(?:was|were|did|had)\b")
_PAST_GERMAN = re.compile(r"\b(?:war|waren|hatte|hatten|wurde|wurden)\b")
_FUTURE = re.compile(r"\b(?:will|shall|won t|going to)\b")
# “Who do I call?” asks for somebody else than “Who calls?”.
_WHOM = re.compile(
    r"\bwho (?:(?:do|does|did|don t|doesn t|didn t)\b"
    r"|(?:can|could|may|must|shall|should|will|would) (?:i|we|you|they|he|she)\b)"
)
# The asker as the one who acts, or with or for whom something is done.
_ACTS = frozenset(("i", "we", "ich", "wir"))
_WHO_ACT = _ACTS | {"you", "sie", "man", "one"}
_IS_ACTED_ON = frozenset(("me", "us", "mich", "mir", "uns"))
_OTHERS = frozenset(("they", "them", "he", "him", "she", "er", "ihm", "ihn"))
_ACQUIRES = re.compile(r"\b(?:gets?|getting|got|obtains?|bekomm\w*|erhalt\w*|erhält)\b")
_PLACES = frozenset(("where", "where from", "how", "who", "whom"))
_QUANTITIES = frozenset(("how much", "how many", "how long", "how often", "how far", "when"))
# Between the same words each says something else; prepositions that are not here may replace each other.
_PREPOSITIONS = {
    "with": "with",
    "mit": "with",
    "about": "about",
    "regarding": "about",
    "concerning": "about",
    "to": "to",
    "into": "to",
    "onto": "to",
    "for": "for",
    "für": "for",
    "in": "in",
    "on": "in",
    "at": "in",
    "through": "through",
    "durch": "through",
}
# What a German verb ends a question with: “Wie schalte ich die Heizung ein?”
_PARTICLES = frozenset(("an", "auf", "aus", "bei", "durch", "ein", "mit", "um", "vor", "weg", "zu", "zurück"))
_COUNTS = frozenset(("number", "amount", "count", "anzahl", "zahl"))
# Words without a subject that still distinguish questions.
_TELLING = frozenset(
    """
    by or make makes made give gives given come comes
    after before until till since during under over above below against between within without up down out off
    only all both each every more most much less least other another same again once still yet already even
    ever too also first last next former instead per than from versus vs else own as
    nach vor bis seit während unter über gegen zwischen innerhalb ohne nur alle beide jede jeder jedes mehr
    weniger andere noch schon auch außer statt als ab
    """.split()  # noqa: SIM905 (a list of words reads as one)
)
# Nouns that verification passes over, because answers use them of their sources.
_OF_SOURCES = re.compile(
    r"\b(page|document|source|section|seite|abschnitt|dokument|quelle)(?:e?s|e?n)?\b", re.IGNORECASE
)
_MODAL_WORDS = frozenset(
    """
    must may allowed permitted required mandatory obligatory compulsory necessary need needs needed possible
    able require requires erlaubt gestattet möglich nötig erforderlich muss kann
    """.split()  # noqa: SIM905
)
_EMPTY = frozenset(
    """
    get gets getting got obtain exactly actually really simply currently usually normally possible able please
    bitte genau eigentlich bekomme bekommt bekommen habe
    """.split()  # noqa: SIM905
)
_COURTEOUS = frozenset(("tell", "explain", "show", "know", "let", "wonder", "wondering", "sagen", "wissen"))
_BETWEEN = frozenset(("of", "for", "in", "at", "on", "von", "für", "im", "am"))
_ARTICLES = frozenset(
    """
    the a an my our your any der die das dem den des ein eine einen einem mein meine dein deine unser unsere
    sein seine ihr ihre
    """.split()  # noqa: SIM905
)
_FRONTED = re.compile(r"^(?:if|when|once|after|before|wenn|falls|sobald)\b[^,]*,")
_POSSESSIVE = re.compile(r"\w[’']s\b|s[’'](?=\s)")
_PARTS = re.compile(r"(?<=\w)[’'](?=\w)")


@dataclass(frozen=True)
class Question:
    """A question prepared for comparison."""

    text: str

    @cached_property
    def _plain(self) -> str:
        return plain_words(_PARTS.sub(" ", self.text))

    @cached_property
    def words(self) -> str:
        """Its words in lower case, without courtesies."""
        return _COURTESY.sub("", self._plain, count=1).strip() or self._plain

    @cached_property
    def has_fronted_clause(self) -> bool:
        return bool(_FRONTED.match(self.text.strip().lower()))

    @cached_property
    def _main(self) -> str:
        """The words of the main clause, if a subordinate one comes first: “If I am ill, whom do I tell?”."""
        if not self.has_fronted_clause:
            return self.words
        return plain_words(_PARTS.sub(" ", self.text.partition(",")[2]))

    @cached_property
    def _asked(self) -> tuple[str, str]:
        """The kind of answer asked for, and the question words; empty for a few words without a question."""
        if _YES_OR_NO.match(self._main):
            return "yes or no", ""
        found = [(match.start(), -len(match[0]), kind, match[0]) for kind, match in self._asking()]
        return min(found)[2:] if found else ("", "")

    def _asking(self) -> Iterator[tuple[str, re.Match[str]]]:
        for kind, pattern in _ASKED:
            if match := pattern.search(self._main):
                yield kind, match

    @cached_property
    def asks_for(self) -> str:
        kind = self._asked[0]
        if kind == "who" and _WHOM.search(self._main):
            return "whom"
        return "how much" if kind == "what" and not _COSTS.isdisjoint(self.words.split()) else kind

    @cached_property
    def duty(self) -> str:
        if _HAS_TO.search(self.words):
            return "has to"
        return "may" if _MAY.search(self.words) else ""

    @cached_property
    def is_passive(self) -> bool:
        """Whether it may be passive; the words are those of the agent."""
        return self.asks_for == "who" and bool(_BEING.search(self.words))

    @cached_property
    def tense(self) -> str:
        if is_german(self.text):
            return "past" if _PAST_GERMAN.search(self.words) else ""
        return "past" if _PAST.search(self.words) else "future" if _FUTURE.search(self.words) else ""

    @cached_property
    def asker(self) -> str:
        """Whether the asker acts or is acted on; empty if not mentioned."""
        words = set(self.words.split())
        return "acts" if words & _ACTS else "is acted on" if words & _IS_ACTED_ON else ""

    @cached_property
    def others(self) -> frozenset[str]:
        return _OTHERS.intersection(self.words.split())

    @cached_property
    def acquires(self) -> bool:
        """Whether it asks where or how something is obtained, and not where it is."""
        return self.asks_for in _PLACES and bool(_ACQUIRES.search(self.words))

    @cached_property
    def particle(self) -> str:
        """The end of a German verb that is separated from it."""
        last = self._main.rpartition(" ")[2]
        return last if last in _PARTICLES and is_german(self.text) else ""

    @cached_property
    def _tokens(self) -> list[Token]:
        return tokens(self.text)

    @cached_property
    def _placed(self) -> list[tuple[str, int, int]]:
        """The content words and names in order, in full, with positions; numbers are marked."""
        asking = set(self._asked[1].split())
        if len(self.words) < len(self._plain):
            asking |= _COURTEOUS
        found: list[tuple[str, int, int]] = []
        for token in self._tokens:
            if token.kind is Kind.NUMBER:
                word = f"#{token.value}"
            elif token.kind in (Kind.WORD, Kind.NAME):
                word = (token.whole or token.value).casefold()
                if word in MONTHS and len(word) > MIN_BASE:
                    word = f"month{MONTHS[word]}"
                if word in asking:
                    asking.discard(word)
                    continue
                if token.kind is Kind.WORD and (word in _EMPTY or word in _MODAL_WORDS):
                    continue
            else:
                continue
            before = found[-1][0] if found else ""
            if (before.startswith("#") and word.startswith("month")) or (
                before.startswith("month") and word.startswith("#")
            ):
                _, start, _ = found.pop()
                word = "#" + " ".join(sorted((before, word)))  # a date, whichever comes first
                found.append((word, start, token.end))
            else:
                found.append((word, token.start, token.end))
        return found

    @cached_property
    def content(self) -> tuple[str, ...]:
        return tuple(word for word, _, _ in self._placed)

    @cached_property
    def prepositions(self) -> list[str]:
        """The kind of the preposition before each content word, and after the last; empty for none."""
        starts = [0, *(end for _, _, end in self._placed)]
        ends = [*(start for _, start, _ in self._placed), len(self.text)]
        between = [plain_words(self.text[start:end]).split() for start, end in zip(starts, ends, strict=True)]
        return [
            next((_PREPOSITIONS[word] for word in reversed(words) if word in _PREPOSITIONS), "")
            for words in between
        ]

    def gap(self, place: int) -> list[str]:
        """The words between a content word and the next."""
        return plain_words(self.text[self._placed[place][2] : self._placed[place + 1][1]]).split()

    @cached_property
    def of_sources(self) -> list[tuple[str, int]]:
        """Nouns like “page”, which are no content words, each with the number of content words before it."""
        return [
            (match[1].lower(), sum(start < match.start() for _, start, _ in self._placed))
            for match in _OF_SOURCES.finditer(self.text)
        ]

    @cached_property
    def negations(self) -> int:
        return sum(token.kind is Kind.NEGATION for token in self._tokens)

    @cached_property
    def poles(self) -> Counter[tuple[int, int]]:
        """Words with an opposite, each as its pair and side."""
        values = (token.value for token in self._tokens if token.kind is Kind.POLAR)
        return Counter(POLES.get(value, (-1, 0)) for value in values if value not in _MODAL_WORDS)

    @cached_property
    def telling(self) -> Counter[str]:
        asking = self._asked[1].split() if self.asks_for != "yes or no" else []
        words = Counter(word for word in self.words.split() if word in _TELLING and word not in POLES)
        return words - Counter(asking)


@lru_cache(MAX_PATTERNS)
def read(text: str) -> Question:
    return Question(text)


def asks_the_same(asked: str, pattern: str) -> bool:
    """Whether the answer to `pattern` answers the question `asked`. Symmetric."""
    if max(len(asked), len(pattern)) > MAX_CHARACTERS:
        return False
    one, other = read(asked), read(pattern)
    if one.words == other.words:
        return bool(one.words) and _marks(one) == _marks(other)
    kinds = {one.asks_for, other.asks_for}
    if one.duty != other.duty and (
        not kinds.isdisjoint(("yes or no", *_QUANTITIES)) or {one.duty, other.duty} == {"has to", "may"}
    ):
        return False
    return (
        bool(one.content)
        and one.negations == other.negations
        and one.poles == other.poles
        and one.telling == other.telling
        and one.of_sources == other.of_sources
        and one.tense == other.tense
        and one.is_passive == other.is_passive
        and {one.asker, other.asker} != {"acts", "is acted on"}
        and one.others == other.others
        and one.acquires == other.acquires
        and one.particle == other.particle
        and (len(kinds) == 1 or kinds in ({"", "what"}, {"who", "by whom"}))
        and _say_the_same(one, other)
    )


def _marks(question: Question) -> list[str]:
    """Significant symbols: “C++” is not “C”, and 20 % not 20."""
    return re.findall(r"[+#%€$£°§&]", question.text)


def _say_the_same(one: Question, other: Question) -> bool:
    """Whether each word of one is equivalent to a word of the other, in an equivalent order."""
    if len(one.content) != len(other.content):
        return False
    places: list[int] = []
    replaced = 0
    for word in one.content:
        free = [place for place in range(len(other.content)) if place not in places]
        same = next((place for place in free if _are_forms(word, other.content[place])), None)
        if same is None:
            synonyms = _SYNONYMS.get(word, set())
            said = (place for place in free if synonyms & _SYNONYMS.get(other.content[place], set()))
            same = next(said, None)
            replaced += 1
        if same is None:
            return False
        places.append(same)
    if replaced > 1 or (replaced and len(places) < 2):
        return False
    if not _relate_alike(one, other, places):
        return False
    if _is_put_in_passive(one, other, places):
        return True
    if one.asks_for != other.asks_for and "by whom" in (one.asks_for, other.asks_for):
        return False
    return _act_alike(one, other, places) and (places == sorted(places) or _is_turned(one, other, places))


def _relate_alike(one: Question, other: Question, places: Sequence[int]) -> bool:
    """Whether no word has another kind of preposition: “for customers” and “with customers”."""
    end = len(places)
    pairs = [(one.prepositions[place], other.prepositions[found]) for place, found in enumerate(places)]
    if places[-1] == end - 1:
        pairs.append((one.prepositions[end], other.prepositions[end]))
    if one.asks_for == "what" and one.prepositions[end] != other.prepositions[end]:
        return False  # “What is the fund for?”
    return all(first == second or not (first and second) for first, second in pairs)


def _is_put_in_passive(one: Question, other: Question, places: Sequence[int]) -> bool:
    """Whether one is the other in the passive: “How do I report a theft?”, “How is a theft reported?”; “Who
    signs a lease?”, “By whom is a lease signed?”"""
    moved = [place for place, found in enumerate(places) if found != place]
    if not moved:
        return False
    start, end = moved[0], moved[-1] + 1
    there = places[start:end]
    return (there == [end - 1, *range(start, end - 1)] and _is_passive_of(other, one, start, end)) or (
        there == [*range(start + 1, end), start] and _is_passive_of(one, other, start, end)
    )


def _is_passive_of(passive: Question, active: Question, start: int, end: int) -> bool:
    """Whether the verb, first of these words in one and last in the other, is passive in one alone."""
    if not _BEING.search(passive.words) or not passive.content[end - 1].endswith(("ed", "n", "t", "d")):
        return False
    if (active.asks_for, passive.asks_for) == ("who", "by whom"):
        return True
    words = ["", *active.words.split()]
    verb = active.content[start]
    return (
        active.asks_for == passive.asks_for
        and passive.asker != "acts"
        and verb in words
        and words[words.index(verb) - 1] in _WHO_ACT
    )


def _act_alike(one: Question, other: Question, places: Sequence[int]) -> bool:
    """Whether no verb is passive or compared in one question alone.

    “Which tools are used?” and “Which tools do we use?” ask the same, “How am I informed?” and “How do I
    inform?” do not.
    """
    for place, found in enumerate(places):
        for first, second, word, base in (
            (one, other, one.content[place], other.content[found]),
            (other, one, other.content[found], one.content[place]),
        ):
            if word == base:
                continue
            if word.endswith(("er", "est")) and word.startswith(base[:-1]) and not base.endswith("er"):
                return False  # “cheaper”
            is_active = second.asker == "acts" and first.asker != "acts" and bool(_BEING.search(first.words))
            if word.endswith("ed") and not base.endswith(("ed", "ing")) and not is_active:
                return False
            if word.endswith("ing") and not base.endswith("ing") and first.duty == "has to":
                return False  # “need supervising”
    return True


def _is_turned(one: Question, other: Question, places: Sequence[int]) -> bool:
    """Whether two adjacent parts are swapped without a change of meaning.

    “VPN password” and “password of my VPN”; “What happens if I am late?” and “If I am late, what happens?”.
    """
    count = len(places)
    start = next(place for place in range(count) if places[place] != place)
    end = next(place for place in range(count, 0, -1) if places[place - 1] != place - 1)
    turn = places.index(start)  # where the second part begins in `one`
    middle = places[start]  # where it begins in `other`
    if [*places[turn:end], *places[start:turn]] != list(range(start, end)):
        return False
    if (start, end) == (0, count) and one.has_fronted_clause != other.has_fronted_clause:
        return True
    # A phrase's head is one word: “change the password of a user” is not “a user changes the password”.
    parts = (
        (one, one.gap(turn - 1), other.gap(middle - 1), other.content[start:middle]),
        (other, other.gap(middle - 1), one.gap(turn - 1), one.content[start:turn]),
    )
    return any(
        not compound
        and set(phrase) <= _BETWEEN | _ARTICLES
        and not _BETWEEN.isdisjoint(phrase)
        and (len(head) == 1 or _POSSESSIVE.search(question.text))
        and _COUNTS.isdisjoint(head)
        for question, compound, phrase, head in parts
    )


def _are_forms(one: str, other: str) -> bool:
    if one == other:
        return True
    if one.startswith("#") or other.startswith("#") or not (one.isalpha() and other.isalpha()):
        return False
    return not _bases(one).isdisjoint(_bases(other))


@lru_cache(50_000)
def _bases(word: str) -> frozenset[str]:
    """The possible base forms of a word, by the endings of verbs and nouns."""
    bases: list[str] = []
    if word.endswith("ies"):
        bases.append(f"{word[:-3]}y")
    elif word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
        bases += [word[:-2], word[:-1]]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        bases.append(word[:-1])
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            base = word.removesuffix(ending)
            bases += [base, f"{base}e"]
            if len(base) > MIN_BASE and base[-1] == base[-2]:
                bases.append(base[:-1])
            if ending == "ed" and base.endswith("i"):
                bases.append(f"{base[:-1]}y")
    # German endings; the rest must be long, so that no English word becomes another.
    for ending in ("en", "n", "er", "em", "es"):
        base = word.removesuffix(ending)
        if base != word and len(base) >= 6 and any(letter in "äöüß" for letter in word):
            bases.append(base)
    return frozenset({word, *(base for base in bases if len(base) >= MIN_BASE)})


def beginnings(pattern: str) -> str:
    """A query (tsquery) that every text contains which asks the same as this pattern; empty if any may.

    Each content word is there in one of its forms or as a synonym; forms share their beginning.
    """
    plain = set(plain_words(pattern).split())
    wanted = []
    for word in read(pattern).content:
        stems = {_stem(each) for each in (word, *_synonyms_of(word))} if word in plain else {""}
        if all(len(stem) >= MIN_BEGINNING for stem in stems):
            wanted.append("(" + " | ".join(f"'{stem}':*" for stem in sorted(stems)) + ")")
    return " & ".join(wanted)


def _synonyms_of(word: str) -> Iterator[str]:
    for number in _SYNONYMS.get(word, ()):
        yield from SYNONYMS[number].split()


def _stem(word: str) -> str:
    """The longest beginning that all forms of a word have in common; empty for what is no plain word."""
    if not word.isalpha() or word.startswith("month") or "ss" in word:
        return ""  # “ss” may be written “ß”
    return commonprefix([base[:-1] if base[-1] in "ey" else base for base in _bases(word)])  # noqa: RUF071 (no paths)


@lru_cache(MAX_PATTERNS)
def content_words(text: str) -> frozenset[str]:
    """The words by which questions are grouped or looked up, each in its shortest form."""
    return frozenset(min(_bases(word), key=lambda base: (len(base), base)) for word in read(text).content)
