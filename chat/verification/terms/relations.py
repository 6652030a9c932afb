"""Finds related words: inflected forms, synonyms, parts of compounds."""

from collections.abc import Iterable
from functools import lru_cache
from math import ceil

from .facts import LISTED, SYNONYMS
from .lexicon import OPPOSITES
from .words import MAX_STEM, Token, skeletons, stem

MAX_COMPOUND = 60  # letters of a word that is split
MIN_PART = 5  # letters of a noun that is searched for within compounds
_DENYING = ("un", "non", "in", "im", "ir")  # “refundable” and “nonrefundable”
_DENIABLE_ENDS = (
    "able", "ible", "ed", "ent", "ant", "al", "ful", "ive", "ate", "lich", "ig", "bar", "sam", "iert", "ten",
)  # fmt: skip
MIN_DENIABLE = 5  # letters after a prefix of _DENYING
SAME_NAME = 0.7  # other forms of a name begin with this share of its letters
SAME_WORD = 0.65  # other forms of a German noun begin with this share of its letters


class Relations:
    """The words of a text, indexed to find one that is related to a given word."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        there = [token for token in tokens if token.whole]
        self._beginnings = {token.value[:5]: token.value for token in there if len(token.value) >= 5}
        self._forms = {form: token.value for token in there for form in forms(token.whole)}
        self._wholes: dict[str, set[str]] = {}
        for token in there:
            self._wholes.setdefault(token.whole[:4], set()).add(token.whole)
        self._stems = {token.value for token in there if len(token.value) >= 4}
        self._all_stems = {stem(token.whole) for token in there}
        self._joined = " ".join(dict.fromkeys(token.whole for token in there)) + " "

    def related(self, value: str, whole: str, *, is_name: bool = False) -> str:
        """The stem of a related word in the text, such as “Urlaub” for “Urlaubstage”; empty if none.

        `value` is the stem of the given word, and `whole` its full form. Names have no synonyms.
        """
        if not whole or any(character.isdigit() for character in value):
            return ""
        if not is_name:
            for form in forms(whole):
                if form in self._forms:
                    return self._forms[form]
        found = self._beginnings.get(value[:5], "") if len(value) >= 5 else ""
        # A name may begin like an unrelated word: Expensify and expenses.
        if found and (not is_name or found.startswith(value[: ceil(SAME_NAME * len(whole))])):
            return found
        at = self._joined.find(value) if len(value) >= 5 else -1
        if at < 0 and len(whole) >= 4:
            at = self._joined.find(f"{whole} ")
        if at >= 0:
            first = self._joined.rfind(" ", 0, at) + 1
            return stem(self._joined[first : self._joined.find(" ", at)])
        # Look for a part of four or more letters at the start or end of a compound.
        if 7 <= len(whole) <= MAX_COMPOUND:
            for cut_at in range(len(whole) - 4, 3, -1):
                if whole[:cut_at] in self._stems:
                    return whole[:cut_at]
                if (last := stem(whole[cut_at:])) in self._stems:
                    return last
        return ""

    def mentions(self, whole: str) -> bool:
        """Whether the text has a German noun, its last part, or a form, synonym or compound of the noun."""
        if (len(whole) <= MAX_STEM + 3 or whole in LISTED) and any(
            form in self._forms for form in forms(whole)
        ):
            return True
        if len(value := stem(whole)) >= MIN_PART and value in self._joined:
            return True  # Verwalter in Systemverwalterrechte
        for other in self._wholes.get(whole[:4], ()):
            if other.startswith(whole[: ceil(SAME_WORD * len(whole))]):
                return True
        return any(stem(whole[at:]) in self._all_stems for at in range(3, min(len(whole), MAX_COMPOUND) - 3))


@lru_cache(20_000)
def forms(word: str) -> tuple[str, ...]:
    """The identifiers that a word shares with its synonyms and irregular forms.

    Examples of irregular forms are “begins” and “began”, or “gilt” and “galt”.
    """
    return (*SYNONYMS.get(stem(word), ()), *(skeleton for skeleton in skeletons(word) if skeleton))


_OPPOSITES: dict[str, set[str]] = {}
for _sides in OPPOSITES:
    _stems = [set(map(stem, side)) for side in _sides]
    for _place, _side in enumerate(_stems):
        for _form in _side:
            _OPPOSITES.setdefault(_form, set()).update(_stems[1 - _place] - _side)


@lru_cache(20_000)
def opposites_of(word: str) -> frozenset[str]:
    """The stems of the opposites of a word, from the list or by a negative prefix such as “un”."""
    found = set(_OPPOSITES.get(stem(word), ()))
    for prefix in _DENYING:
        rest = word.removeprefix(prefix).removeprefix("-")
        if rest != word and len(rest) >= MIN_DENIABLE and rest.endswith(_DENIABLE_ENDS):
            found.add(stem(rest))
    if len(word) >= MIN_DENIABLE and word.endswith(_DENIABLE_ENDS):
        found.update(stem(prefix + word) for prefix in (*_DENYING, "non-"))
    return frozenset(found)
