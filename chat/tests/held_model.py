"""A model that pauses in the middle of its answer until a test releases it."""

import asyncio
from contextlib import aclosing

from chat.tests.scripted_model import ScriptedModel


class HeldModel(ScriptedModel):
    """Sends its first word, and the others after `released` is set."""

    def __init__(self, **values):
        super().__init__(**values)
        self.released = asyncio.Event()

    async def answer(self, prompt):
        async with aclosing(super().answer(prompt)) as parts:
            yield await anext(parts)
            await self.released.wait()
            async for part in parts:
                yield part
