"""The title of a shared conversation or answer, as far as its reader may see it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from uuid import UUID

from django.db.models import Q

from chat.llm.side_texts import title_of
from chatsite.accounts.principal import Principal
from history.branches import Branches
from history.models import Message, Share

from .withholding import SharedMessage, closed_questions, normal

LOOKED_AT = 50  # messages that a list searches for the question that becomes the title
# Messages whose suggested questions a list compares with that question; if more precede it, the list does not
# show it as a title.
LOOKED_BACK = 500

Place = tuple[UUID, int]  # a conversation and a position in it


def shared_title(share: Share, shown: Sequence[SharedMessage]) -> str:
    """The title that the conversation had when it was shared, or its first question.

    The question is used if there is no title, or if the title was generated from an earlier version of it.
    Empty if the question is not shown, and for the share of a single answer.
    """
    if share.answer_id is not None or not shown or shown[0].closed:
        return ""
    first = shown[0].message
    return share.title_from(first.position) or title_of(first.content)


def listed_titles(principal: Principal, shares: Iterable[Share]) -> dict[UUID, str]:
    """The title that a list may show for each share.

    The number of queries does not depend on the number of shares. A conversation has the same title as on its
    page; the title of an answer is its question. A title is missing if the reader may not see the
    question, or if the title is a question that an answer may have suggested, because only the page checks
    whether the reader may see such a question. It is also missing if more messages than LOOKED_AT or
    LOOKED_BACK would have to be searched, so that long conversations do not slow down a list.
    """
    shares = list(shares)
    branches = Branches.of({share.conversation_id for share in shares})
    looked_at: dict[UUID, list[Place]] = {}  # by share, the places where its question may be, nearest first
    for share in shares:
        spans = branches[share.conversation_id].spans_to(share.up_to)
        path = chain.from_iterable(spans)
        if share.answer_id is not None:
            path = chain.from_iterable(map(reversed, reversed(spans)))
        looked_at[share.pk] = [(share.conversation_id, each) for each in islice(path, LOOKED_AT)]
    asked = Message.objects.filter(role=Message.Role.USER).order_by()
    asked_at = set(
        asked.filter(_at(chain.from_iterable(looked_at.values()))).values_list("conversation", "position")
    )
    named: dict[UUID, Place] = {}  # by share, the place of the question that becomes its title
    for share_id, places in looked_at.items():
        if place := next((each for each in places if each in asked_at), None):
            named[share_id] = place
    rows = asked.filter(_at(named.values())).values_list("conversation", "position", "content")
    texts = {(conversation, position): content for conversation, position, content in rows}
    closed = closed_questions(principal, list(texts.values()), None)
    kept = {
        share.pk: title
        for share in shares
        if share.pk in named and share.answer_id is None and (title := share.title_from(named[share.pk][1]))
    }
    of_questions = {conversation for pk, (conversation, _) in named.items() if pk not in kept}
    earlier = Message.objects.filter(conversation__in=of_questions, position__lt=LOOKED_BACK)
    answered = earlier.exclude(followups=[]).order_by()
    offered = {
        (conversation, normal(each))
        for conversation, followups in answered.values_list("conversation", "followups")
        for each in followups
        if isinstance(each, str)
    }
    titles: dict[UUID, str] = {}
    for share in shares:
        place = named.get(share.pk)
        if place not in texts or normal(texts[place]) in closed:  # no question, just deleted, or not visible
            continue
        if share.pk in kept:
            titles[share.pk] = kept[share.pk]
        elif place[1] <= LOOKED_BACK and (place[0], normal(texts[place])) not in offered:
            titles[share.pk] = texts[place] if share.answer_id else title_of(texts[place])
    return titles


def _at(places: Iterable[Place]) -> Q:
    """A filter for the messages at these places."""
    positions: dict[UUID, set[int]] = defaultdict(set)
    for conversation, position in places:
        positions[conversation].add(position)
    found = Q(pk__in=[])
    for conversation, in_it in positions.items():
        found |= Q(conversation=conversation, position__in=in_it)
    return found
