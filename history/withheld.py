"""Labels of sources that a reader may no longer open.

The document was deleted, or the reader lost access to it.
"""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from chatsite.accounts.principal import Principal

from .citation_text import without
from .models import Message, Source


def withheld_labels(principal: Principal, conversation_id: UUID, up_to: int | None = None) -> frozenset[str]:
    """Labels of a conversation's sources that the reader may not open now.

    With `up_to`, only labels in the messages up to this position.
    """
    given = Message.objects.filter(conversation=conversation_id).exclude(labels=[], citations=[]).order_by()
    if up_to is not None:
        given = given.filter(position__lte=up_to)
    named = {
        label
        for labels, citations in given.values_list("labels", "citations")
        for label in (*labels, *citations)
    }
    if not named:
        return frozenset()
    readable = Source.objects.visible_to(principal).filter(message__conversation=conversation_id)
    return frozenset(named.difference(readable.order_by().values_list("label", flat=True)))


def without_names(value: Any, labels: Collection[str]) -> Any:
    """A text, or lists and dictionaries of texts, without citations of these labels."""
    if not labels:
        return value
    if isinstance(value, str):
        # The messages of the step “Prompt” are written as by repr(), in which labels may be escaped.
        return without(value, {*labels, *(repr(label)[1:-1] for label in labels)})
    if isinstance(value, list | tuple):
        return [without_names(item, labels) for item in value]
    if isinstance(value, dict):
        return {name: without_names(item, labels) for name, item in value.items()}
    return value
