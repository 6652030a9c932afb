"""A model that stops in the middle of its answer for as long as a test likes."""

import asyncio
from contextlib import aclosing

from chat.llm.scripted import ScriptedModel


class HeldModel(ScriptedModel):
    """Says its first word, and the others once it is `released`."""

    def __init__(self, **values):
        super().__init__(**values)
        self.released = asyncio.Event()

    async def answer(self, prompt):
        async with aclosing(super().answer(prompt)) as parts:
            yield await anext(parts)
            await self.released.wait()
            async for part in parts:
                yield part
