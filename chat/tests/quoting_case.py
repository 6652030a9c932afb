"""Questions to the model that quotes, for tests of quotations."""

import asyncio

from django.test import SimpleTestCase, override_settings

from chat.llm.chat_model import Prompt, Text
from chat.quoting.quoting_model import QuotingModel
from chat.requests import EarlierMessage
from chat.tests.sources import source

LEAVE = source(
    label="handbook.pdf#page=3",
    content="Annual leave is taken between 1 January and 31 December. Boots are cleaned weekly.",
)


@override_settings(QUOTING_WORDS_PER_SECOND=1_000_000)
class QuotingCase(SimpleTestCase):
    def answer(self, question, *earlier, sources=(LEAVE,), fit=4.0):
        async def collected():
            turns = [EarlierMessage("user", text) for text in earlier]
            parts = QuotingModel().answer(Prompt(question, turns, list(sources), 0.3, fit=fit))
            return "".join([part.text async for part in parts if isinstance(part, Text)])

        return asyncio.run(collected())
