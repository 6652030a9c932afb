"""Shows people who share an answer or a conversation what its readers may not see.

The preview uses only what the sharer may know: which documents are open to everybody, and who may read the
sharer's own documents. Whether a named reader can open other documents must not be revealed, so these count
as closed.
"""

from dataclasses import dataclass

from chatsite.accounts.principal import Principal
from history.models import Message, Share
from ingestion.access.lists import Audience, audience_of, widens
from ingestion.models import Document

from .shared_titles import shared_title
from .withholding import shared_messages


@dataclass(frozen=True, slots=True)
class SharePreview:
    """How many statements the shared answers have, and how many of them some readers may not see.

    A document is doubtful if something is left out because some readers may be unable to open it.
    """

    statements: int
    left_out: int
    hides: bool  # whether a statement, an answer or a question is hidden
    shows_no_answer: bool  # whether a reader who cannot open any of the doubtful documents sees no answer
    questions: int  # number of questions that every reader sees
    title: str  # title that every reader sees; empty if there is none
    certain: bool  # whether it is certain that nobody but the sharer can open any of the doubtful documents
    own: tuple[Document, ...]  # doubtful documents whose readers the sharer may change


def preview(principal: Principal, share: Share, audience: Audience) -> SharePreview:
    """What a new share shows to everybody in its audience, as far as the sharer may know it."""
    doubtful: dict[int, tuple[Document, Audience]] = {}

    def is_open(document: Document) -> bool:
        readers = audience_of(document)
        is_own = document.owner_id == principal.user_id
        if readers.everyone or (is_own and not widens(readers, audience)):
            return True
        doubtful[document.pk] = (document, readers)
        return False

    shown = [
        each
        for each in shared_messages(principal, share, is_open)
        if each.message.state not in Message.UNFINISHED
    ]
    answers = [each for each in shown if each.message.role == Message.Role.ASSISTANT]
    questions = [each for each in shown if each.message.role == Message.Role.USER]
    # Consider only documents that cause something to be left out: an answer does not always use everything
    # that was found.
    closing = frozenset().union(*(each.closed_documents for each in shown))
    in_doubt = [found for key, found in doubtful.items() if key in closing]
    own = [each for each, _ in in_doubt if each.owner_id == principal.user_id]
    only_owners = all(readers == Audience() for _, readers in in_doubt)
    return SharePreview(
        statements=sum(each.statements for each in answers),
        left_out=sum(each.left_out for each in answers),
        hides=any(each.closed or each.left_out for each in shown),
        shows_no_answer=bool(answers) and all(each.closed for each in answers),
        questions=sum(not each.closed for each in questions),
        title=shared_title(share, shown),
        certain=bool(in_doubt) and len(own) == len(in_doubt) and only_owners,
        own=tuple(sorted(own, key=lambda each: str(each).casefold())),
    )
