"""The language model's second look at statements that were not found in their sources.

The rules of chat.verification are applied first. The model checks only unclear statements: their wording
differs too much from the passage, but no fact in it contradicts them. The model can therefore confirm a
paraphrase, but not a contradicted fact. Passages may contain instructions for the model, so its reply is not
trusted: each request contains a control statement that no passage supports, and a reply that confirms the
control or leaves it out is ignored.
"""

import asyncio
import logging
import secrets
from collections.abc import Sequence
from dataclasses import replace

from django.conf import settings

from chat.llm import ChatModel, ModelError
from chat.sources import SourceView
from chat.statements import Proof, Statement
from history.citation_text import without

logger = logging.getLogger(__name__)

SECONDS = 10.0
MAX_STATEMENT = 500  # characters of a statement
MAX_PASSAGE = 3_000  # characters of all passages with one label
CONTROL = "The passage says that the moon was bought by a lighthouse keeper called Ottokar."


async def second_look(
    model: ChatModel, text: str, statements: Sequence[Statement], sources: Sequence[SourceView]
) -> tuple[Statement, ...] | None:
    """All statements, with their verdicts after the second look; None if no verdict changes."""
    doubted = [
        (each, proof)
        for each in statements
        if each.verdict == "not_found"
        for proof in each.proofs
        if proof.unclear
    ][: settings.SECOND_LOOK]
    if not doubted:
        return None
    labels = list(dict.fromkeys(proof.label for _, proof in doubted))
    passages = [
        "\n".join(source.content for source in sources if source.label == label)[:MAX_PASSAGE]
        for label in labels
    ]
    asked = [
        (labels.index(proof.label), without(text[each.start : each.end], each.citations)[:MAX_STATEMENT])
        for each, proof in doubted
    ]
    control = secrets.randbelow(len(asked) + 1)
    with_control = [*asked[:control], (0, CONTROL), *asked[control:]]
    try:
        async with asyncio.timeout(SECONDS):
            verdicts = await model.supported(passages, with_control)
    except (TimeoutError, ModelError) as error:
        logger.warning("The second look failed: %s", type(error).__name__)
        return None
    if verdicts.get(control) is not False:
        if verdicts:
            logger.warning("The second look confirmed or omitted its control statement, and was discarded")
        return None
    confirmed = {
        proof for place, (_, proof) in enumerate(doubted) if verdicts.get(place + (place >= control)) is True
    }
    return tuple(_with_confirmed(each, confirmed) for each in statements) if confirmed else None


def _with_confirmed(statement: Statement, confirmed: set[Proof]) -> Statement:
    proofs = tuple(
        replace(proof, verdict="supported", by_model=True, unclear=False) if proof in confirmed else proof
        for proof in statement.proofs
    )
    if proofs == statement.proofs:
        return statement
    return replace(statement, verdict="supported", proofs=proofs)
