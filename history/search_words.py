"""The words under which messages and titles are indexed.

PostgreSQL receives the words and not the text, so that neither its parser nor its locale matters. Each
message and title is also indexed under a word that names its owner, so that the index itself limits a search
to one person, however common a search term is in other people's messages.
"""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.search import SearchVectorField
from django.db.models import Func, TextField, Value

from ingestion.search.tokens import search_text

WORD_LENGTH = 100  # characters; PostgreSQL refuses a word of more than 2,046 bytes


def words_of(text: str, *, stored: bool = True) -> list[str]:
    """The words that `search_text` makes of a text, each once, in order."""
    return list(dict.fromkeys(word[:WORD_LENGTH] for word in search_text(text, stored=stored).split()))


def owner_word(owner_id: int) -> str:
    """The word that names an owner; no text yields it, since words have no punctuation."""
    return f"owner:{owner_id}"


def lexemes(owner_id: int, text: str) -> list[str] | None:
    """The argument of `array_to_tsvector` for the column `search`; None if there are no words."""
    words = words_of(text)
    return [*words, owner_word(owner_id)] if words else None


def search_vector(owner_id: int, text: str) -> Func | None:
    """The value of the column `search`; None if there are no words."""
    found = lexemes(owner_id, text)
    if found is None:
        return None
    value = Value(found, output_field=ArrayField(TextField()))
    return Func(value, function="array_to_tsvector", output_field=SearchVectorField())
