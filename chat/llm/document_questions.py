"""Questions that a document answers, which the model writes while the document is being read."""

import asyncio

from chatsite.event_loops import close_all

from .chat_model import configured_model


def write(title: str, text: str) -> list[str]:
    """Return questions for a document; empty if the model fails.

    Ingestion calls this function by its path, through the setting QUESTION_WRITER.
    """

    async def written() -> list[str]:
        try:
            return await configured_model().document_questions(title, text)
        finally:
            await close_all()  # this event loop exists only for this call

    return asyncio.run(written())
