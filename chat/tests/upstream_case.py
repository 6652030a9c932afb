"""Tests of the remote model against the fake server, with short deadlines."""

import asyncio
import logging
import time
from contextlib import aclosing

from django.test import SimpleTestCase, override_settings

from chat.llm import ModelError, Prompt, Text
from chat.llm.connections import connection
from chat.llm.remote import RemoteModel
from chat.requests import EarlierMessage
from chat.tests.fake_openai import FakeOpenAI
from chat.tests.sources import source
from chat.tests.upstream_faults import KEY
from chatsite.tests.limits import HANG_SECONDS

SERVER = {"CHAT_MODEL": "fake", "OPENAI_API_KEY": KEY}
QUICK = {
    "ANSWER_CONNECT_SECONDS": 0.5,
    "ANSWER_FIRST_TOKEN_SECONDS": 0.6,
    "ANSWER_IDLE_SECONDS": 0.4,
    "ANSWER_TOTAL_SECONDS": 1.2,
}
# Deadlines of tests that must not reach any, even on a busy machine.
LONG = dict.fromkeys(QUICK, HANG_SECONDS)
TURNS = (
    EarlierMessage("user", "Leave?"),
    EarlierMessage("assistant", "Yes."),
    EarlierMessage("user", "Pay?"),
    EarlierMessage("assistant", "No."),
)
PROMPT = Prompt("How many days?", (), (source(1, "guide.md"), source(2, "rates.md")), 0.3)


async def collect(model, prompt=PROMPT):
    """Return (text, other parts, the error or None), and close the connection."""
    text, others, failure = "", [], None
    try:
        async with aclosing(model.answer(prompt)) as parts:
            async for part in parts:
                if isinstance(part, Text):
                    text += part.text
                else:
                    others.append(part)
    except ModelError as error:
        failure = error
    finally:
        await connection().server.close()
    return text, others, failure


class FakeServerTestCase(SimpleTestCase):
    deadlines = {}  # settings: QUICK in tests that reach a deadline

    def setUp(self):
        self.fake = self.enterContext(FakeOpenAI())
        self.enterContext(override_settings(OPENAI_BASE_URL=self.fake.url, **SERVER, **self.deadlines))
        self.logged = self.enterContext(self.assertLogs(level="WARNING"))
        logging.getLogger("chat").warning("So that there is one")

    def ask(self, *script, prompt=PROMPT):
        """Ask the model; return (text, error code)."""
        self.fake.script(*script)
        before = time.monotonic()
        text, self.others, self.error = asyncio.run(collect(RemoteModel(), prompt))
        self.seconds = time.monotonic() - before
        self.assertNotIn(KEY, "\n".join(self.logged.output))
        return text, self.error.code if self.error else None

    def calls(self):
        return len(self.fake.streams)
