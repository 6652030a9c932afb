"""A glossary entry and who may see it."""

import re
from typing import ClassVar

from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext, gettext_lazy

from ingestion.search.tokens import plain_words

MAX_NAMES = 30  # names of one entry
MAX_WORDS_OF_A_NAME = 6
_BETWEEN_NAMES = re.compile(r"[,\n]")


class HouseWordQuerySet(models.QuerySet["HouseWord"]):
    def managed_by(self, user_id: int, *, is_superuser: bool) -> "HouseWordQuerySet":
        """Entries that a manager may see and change.

        For a superuser, all entries; for others, those for everyone and those only for their own groups.
        """
        if is_superuser:
            return self.all()
        through = HouseWord.groups.through.objects
        own = through.filter(group__user=user_id).values("houseword")
        others = through.exclude(group__user=user_id).values("houseword")
        return self.filter(Q(restricted=False) | Q(pk__in=own)).exclude(pk__in=others)


class HouseWord(models.Model):
    """An entry of the glossary: a term, or everyday words.

    A term has other names, a meaning, or both; everyday words have the words that documents use for them.
    The model keeps its original name, because a release must not rename tables or permissions that the
    previous version uses.
    """

    class Kind(models.TextChoices):
        TERM = (
            "term",
            gettext_lazy("A term: if a question contains one of its names, all of them are searched for"),
        )
        EVERYDAY = (
            "everyday",
            gettext_lazy(
                "Everyday words: if a question contains them, the other words are also searched for"
            ),
        )

    kind = models.CharField(max_length=10, choices=Kind, default=Kind.TERM)
    term = models.CharField(
        gettext_lazy("word"),
        max_length=200,
        help_text=gettext_lazy(
            "For everyday words, one or more, separated by commas: sick note, doctor's note."
        ),
    )
    synonyms = models.TextField(
        gettext_lazy("other words"),
        blank=True,
        max_length=1_000,
        help_text=gettext_lazy(
            "Words that are also searched for, separated by commas. For everyday words, they replace "
            "the built-in ones; without any, nothing is added."
        ),
    )
    meaning = models.CharField(
        max_length=500,
        blank=True,
        help_text=gettext_lazy("Shown where the word occurs in an answer. Only for terms."),
    )
    groups = models.ManyToManyField(
        Group,
        blank=True,
        help_text=gettext_lazy(
            "Only members of these groups search with the word and see it. Without a group, everyone does."
        ),
    )
    # Remains true when the last group is deleted: the entry is then hidden, not public.
    restricted = models.BooleanField(default=False, editable=False)
    keys = ArrayField(models.TextField(), default=list, editable=False)
    changed_at = models.DateTimeField(auto_now=True)

    objects: ClassVar[HouseWordQuerySet] = HouseWordQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["term", "pk"]
        verbose_name = gettext_lazy("glossary entry")
        verbose_name_plural = gettext_lazy("glossary entries")
        indexes = [GinIndex(fields=["keys"], name="house_word_keys")]

    def __str__(self) -> str:
        return self.term

    def save(self, **options: object) -> None:
        self.keys = keys_of(self.kind, self.term, self.synonyms)
        super().save(**options)  # type: ignore[arg-type]

    def clean(self) -> None:
        """Validate an entry, whether it comes from the form or from an imported line."""
        self.term = " ".join(self.term.split())
        if self.kind == self.Kind.EVERYDAY and self.meaning:
            raise ValidationError(
                {"meaning": gettext("Everyday words are not explained: leave the meaning empty.")}
            )
        if self.kind == self.Kind.TERM and not (self.synonyms.strip() or self.meaning.strip()):
            raise ValidationError(gettext("A term needs a meaning or other words."))
        if self.kind == self.Kind.TERM and "," in self.term:
            raise ValidationError(
                {"term": gettext("A term is a single name; enter its other names under “other words”.")}
            )
        for field, text in (("term", self.term), ("synonyms", self.synonyms)):
            names = names_of(text)
            if field == "term" and not any(map(plain_words, names)):
                raise ValidationError({field: gettext("Enter at least one word.")})
            if len(names) > MAX_NAMES:
                raise ValidationError({field: gettext("Enter at most %(most)s.") % {"most": MAX_NAMES}})
            if any(len(plain_words(name).split()) > MAX_WORDS_OF_A_NAME for name in names):
                raise ValidationError(
                    {field: gettext("Each has at most %(most)s words.") % {"most": MAX_WORDS_OF_A_NAME}}
                )


def names_of(text: str) -> list[str]:
    """The names in a field, separated by commas or line breaks."""
    return [name for each in _BETWEEN_NAMES.split(text) if (name := " ".join(each.split()))]


def keys_of(kind: str, term: str, synonyms: str) -> list[str]:
    """The distinct names, normalised by `plain_words`, under which an entry is found in a text."""
    names = names_of(term) + (names_of(synonyms) if kind == HouseWord.Kind.TERM else [])
    return list(dict.fromkeys(key for name in names if (key := plain_words(name))))
