"""The parts of an answer that the site made of quotations, without a language model.

Text without a citation, such as a heading, a lead-in, or the column names of a table, belongs to the
quotation that follows; the sentence about omitted rows belongs to the table above it. The site's own phrases
come from no document.
"""

from collections.abc import Collection
from dataclasses import dataclass

from chat.llm.chat_model import NOTHING_FOUND
from chat.pleasantries import ANSWERS
from chat.quoting.quoted_answer import NOTICES
from chat.quoting.quoting_model import QuotingModel
from chat.quoting.table_rows.table_notices import ROWS_SHOWN
from chat.verification.answer_statements import cut
from history.citation_text import CITATION
from history.models import Message

PHRASES = frozenset({*NOTHING_FOUND, *NOTICES, *ANSWERS})


@dataclass(frozen=True, slots=True)
class QuotedPart:
    """A quotation with its lead-in and the labels that it cites, or a phrase of the site."""

    text: str
    labels: frozenset[str] = frozenset()
    is_phrase: bool = False

    @property
    def statements(self) -> int:
        return 0 if self.is_phrase else len(cut(ROWS_SHOWN.sub("", self.text), self.labels))


def is_phrase(text: str) -> bool:
    """Whether the text is one of `PHRASES`: a notice, a greeting, or that nothing was found."""
    return text.strip() in PHRASES


def is_quoted(message: Message) -> bool:
    """Whether the site wrote the answer without a language model, according to its steps.

    The steps of a language model, even of one that is named “quotations”, would contain a prompt.
    """
    if message.run_id is None or message.imported or message.verified:
        return False
    prompts = [each for each in message.thoughts if isinstance(each, dict) and each.get("title") == "Prompt"]
    return len(prompts) == 1 and (
        prompts[0].get("description") == []
        and (prompts[0].get("props") or {}).get("model") == QuotingModel.name
    )


def quoted_parts(text: str, labels: Collection[str]) -> list[QuotedPart]:
    """The parts of an answer made of quotations, in order.

    A part without citations that is not one of the site's phrases belongs to a truncated answer.
    """
    parts: list[QuotedPart] = []
    waiting: list[str] = []
    for block in text.split("\n\n"):
        if not block.strip():
            continue
        if not waiting and is_phrase(block):
            parts.append(QuotedPart(block, is_phrase=True))
        elif not waiting and parts and parts[-1].labels and ROWS_SHOWN.fullmatch(block.strip()):
            parts[-1] = QuotedPart(f"{parts[-1].text}\n\n{block}", parts[-1].labels)
        else:
            waiting.append(block)
            cited = frozenset(match[2] for match in CITATION.finditer(block) if match[2] in labels)
            if cited:
                parts.append(QuotedPart("\n\n".join(waiting), cited))
                waiting = []
    if waiting:
        parts.append(QuotedPart("\n\n".join(waiting)))
    return parts


def statements_of(message: Message) -> int:
    """The number of statements in an answer, without the site's phrases."""
    labels = {*message.labels, *message.citations}
    if is_phrase(message.content):
        return 0
    if is_quoted(message):
        return sum(part.statements for part in quoted_parts(message.content, labels))
    return len(cut(message.content, labels))
