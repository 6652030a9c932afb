"""What a question asks for: kind, duty, tense, persons and content words.

English and German are supported.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from django.utils.functional import cached_property

from ingestion.search.tokens import plain_words

from .terms.facts import is_german, tokens
from .terms.lexicon import MONTHS, POLES
from .terms.words import Kind, Token

MAX_PATTERNS = 20_000  # cached questions
MIN_BASE = 3  # letters that a word must have without its ending

# Polite phrases before the question itself.
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
_ASKS = (  # the longest of the earliest matches applies
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
_COSTS = frozenset(
    """
    cost costs price prices fee fees rate rates kostet kosten preis gebühr satz
    """.split()  # noqa: SIM905 (a list of words reads as one)
)
# Questions such as “What is the mileage rate for bicycles?”, which name one thing and have no verb but “is”.
_NAMES_ONE = re.compile(
    r"^(?:what|which|how (?:much|long|high|large)|was|welche[rs]?|wie (?:hoch|viel|lange?|groß)) "
    r"(?:is|are|ist|sind) (?:the|a|an|my|our|der|die|das|mein|meine|unser|unsere) "
    r"(?!.*\b(?:that|which|who|whom|whose|where|when|if|because|wenn|falls|weil|dass)\b)"
)
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
BEING = re.compile(r"\b(?:is|are|was|were|be|been|being|gets?|wird|werden|wurde|wurden)\b")
_PAST = re.compile(r"\b(?:was|were|did|had)\b")
_PAST_GERMAN = re.compile(r"\b(?:war|waren|hatte|hatten|wurde|wurden)\b")
_FUTURE = re.compile(r"\b(?:will|shall|won t|going to)\b")
# “Who do I call?” asks for a different person than “Who calls?”.
_WHOM = re.compile(
    r"\bwho (?:(?:do|does|did|don t|doesn t|didn t)\b"
    r"|(?:can|could|may|must|shall|should|will|would) (?:i|we|you|they|he|she)\b)"
)
# Pronouns of the person who asks: as the actor (_ACTS), or as somebody to whom something is done
# (_IS_ACTED_ON). WHO_ACT also has the general “you” and “one”; _OTHERS has the pronouns of other people.
_ACTS = frozenset(("i", "we", "ich", "wir"))
WHO_ACT = _ACTS | {"you", "sie", "man", "one"}
_IS_ACTED_ON = frozenset(("me", "us", "mich", "mir", "uns"))
_OTHERS = frozenset(("they", "them", "he", "him", "she", "er", "ihm", "ihn"))
_ACQUIRES = re.compile(r"\b(?:gets?|getting|got|obtains?|bekomm\w*|erhalt\w*|erhält)\b")
_PLACES = frozenset(("where", "where from", "how", "who", "whom"))
QUANTITIES = frozenset(("how much", "how many", "how long", "how often", "how far", "when"))
# Prepositions by kind: a different kind in the same place makes a different question. Prepositions that are
# neither here nor in _TELLING are interchangeable.
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
    "am": "in",
    "im": "in",
    "through": "through",
    "durch": "through",
}
# Separable prefixes of German verbs at the end of a question: “Wie schalte ich die Heizung ein?”
_PARTICLES = frozenset(("an", "auf", "aus", "bei", "durch", "ein", "mit", "um", "vor", "weg", "zu", "zurück"))
COUNTS = frozenset(("number", "amount", "count", "anzahl", "zahl"))
# Words that do not name things, but distinguish questions.
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
# Nouns with which texts refer to their sources. `tokens` leaves them out as stop words, because verification
# ignores them in answers.
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
BETWEEN = frozenset(("of", "for", "in", "at", "on", "von", "für", "im", "am"))
ARTICLES = frozenset(
    """
    the a an my our your any der die das dem den des ein eine einen einem mein meine dein deine unser unsere
    sein seine ihr ihre
    """.split()  # noqa: SIM905
)
_FRONTED = re.compile(r"^(?:if|when|once|after|before|wenn|falls|sobald)\b[^,]*,")
POSSESSIVE = re.compile(r"\w[’']s\b|s[’'](?=\s)")
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
        """The words of the question in lower case, without polite phrases."""
        return _COURTESY.sub("", self._plain, count=1).strip() or self._plain

    @cached_property
    def names_one_thing(self) -> bool:
        """Whether it asks what something is, without another verb."""
        return bool(_NAMES_ONE.match(self.words))

    @cached_property
    def has_fronted_clause(self) -> bool:
        return bool(_FRONTED.match(self.text.strip().lower()))

    @cached_property
    def _main(self) -> str:
        """The words without a subordinate clause before the main one: “If I am ill, whom do I tell?”."""
        if not self.has_fronted_clause:
            return self.words
        return plain_words(_PARTS.sub(" ", self.text.partition(",")[2]))

    @cached_property
    def _asked(self) -> tuple[str, str]:
        """The kind of answer asked for, and the question words; both empty if there are none."""
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
        return "how much" if kind in ("", "what") and not _COSTS.isdisjoint(self.words.split()) else kind

    @cached_property
    def duty(self) -> str:
        if _HAS_TO.search(self.words):
            return "has to"
        return "may" if _MAY.search(self.words) else ""

    @cached_property
    def is_passive(self) -> bool:
        """Whether a question with “who” may be passive: “who was informed?”"""
        return self.asks_for == "who" and bool(BEING.search(self.words))

    @cached_property
    def tense(self) -> str:
        if is_german(self.text):
            return "past" if _PAST_GERMAN.search(self.words) else ""
        return "past" if _PAST.search(self.words) else "future" if _FUTURE.search(self.words) else ""

    @cached_property
    def asker(self) -> str:
        """The role of the person who asks, “acts” or “is acted on”; empty if not mentioned."""
        words = set(self.words.split())
        return "acts" if words & _ACTS else "is acted on" if words & _IS_ACTED_ON else ""

    @cached_property
    def others(self) -> frozenset[str]:
        return _OTHERS.intersection(self.words.split())

    @cached_property
    def acquires(self) -> bool:
        """Whether the question asks where, how or from whom to get something, not where it is."""
        return self.asks_for in _PLACES and bool(_ACQUIRES.search(self.words))

    @cached_property
    def particle(self) -> str:
        """The separated prefix of a German verb, at the end of the question; empty if there is none."""
        last = self._main.rpartition(" ")[2]
        return last if last in _PARTICLES and is_german(self.text) else ""

    @cached_property
    def _tokens(self) -> list[Token]:
        return tokens(self.text)

    @cached_property
    def _placed(self) -> list[tuple[str, int, int]]:
        """The content words, names and numbers in order, with start and end; numbers begin with “#”."""
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
                word = "#" + " ".join(sorted((before, word)))  # a date; day and month in either order
                found.append((word, start, token.end))
            else:
                found.append((word, token.start, token.end))
        return found

    @cached_property
    def content(self) -> tuple[str, ...]:
        return tuple(word for word, _, _ in self._placed)

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The content words in the spelling of the text, in the order of `content`."""
        return tuple(self.text[start:end] for _, start, end in self._placed)

    @cached_property
    def prepositions(self) -> list[str]:
        """The kind of preposition (possibly empty) before each content word and after the last one."""
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

    def is_fronted(self, words: int) -> bool:
        """Whether a preposition and this many content words come first: “On Sundays, when …?”."""
        first, *others = plain_words(self.text[: self._placed[0][1]]).split() or [""]
        asking = self._asked[1].split()
        return (
            first in _PREPOSITIONS
            and set(others) <= ARTICLES
            and bool(asking)
            and set(asking) <= set(self.gap(words - 1))
        )

    @cached_property
    def of_sources(self) -> list[tuple[str, int]]:
        """Nouns such as “page”, which `content` lacks, each with the number of content words before it."""
        return [
            (match[1].lower(), sum(start < match.start() for _, start, _ in self._placed))
            for match in _OF_SOURCES.finditer(self.text)
        ]

    @cached_property
    def negations(self) -> int:
        return sum(token.kind is Kind.NEGATION for token in self._tokens)

    @cached_property
    def poles(self) -> Counter[tuple[int, int]]:
        """The words that have an opposite, as (number of the pair, side); see `POLES`."""
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
