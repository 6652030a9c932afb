"""The files whose functions one streamed answer runs, and the nesting of its asynchronous generators.

Measures the second answer of a process, because the first one also loads modules that are imported late.

Run with the suite's database: python -m pytest -q -s benchmarks/request_depth.py
"""

import inspect
import json
import sys
import threading
from pathlib import Path

from asgiref.sync import sync_to_async
from django.conf import settings
from django.test import AsyncClient, TransactionTestCase

from chat.llm import use_model
from chat.tests.scripted_model import ScriptedModel
from chatsite.db import threads
from ingestion.tests.factories import make_document, make_user

BODY = json.dumps({"messages": [{"role": "user", "content": "Carry over leave until when?"}]})
LEFT_OUT = ("tests", "benchmarks", ".venv", ".venv-dev")


class RequestDepth(TransactionTestCase):
    async def test_one_streamed_answer(self):
        client = await self._signed_in()
        entered, deepest = set(), [0]

        def is_ours(code):
            path = Path(code.co_filename)
            return path.is_relative_to(settings.BASE_DIR) and not set(LEFT_OUT) & set(
                path.relative_to(settings.BASE_DIR).parts
            )

        def profile(frame, event, argument):
            if event != "call" or frame.f_code.co_name == "<module>" or not is_ours(frame.f_code):
                return
            entered.add(frame.f_code.co_filename)
            depth = 0
            while frame is not None:
                depth += bool(frame.f_code.co_flags & inspect.CO_ASYNC_GENERATOR) and is_ours(frame.f_code)
                frame = frame.f_back
            deepest[0] = max(deepest[0], depth)

        with use_model(ScriptedModel(words=["word "] * 20)):
            await self._answered(client)
        threads._threads.cache_clear()  # new threads are needed, because existing ones are not profiled
        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            with use_model(ScriptedModel(words=["word "] * 20)):
                await self._answered(client)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        print(f"\nfiles entered: {len(entered)}\nnested generators: {deepest[0]}")

    async def _answered(self, client):
        answer = await client.post("/chat/stream", BODY, "application/json")
        assert answer.status_code == 200
        async for _ in answer.streaming_content:
            pass

    async def _signed_in(self):
        user = await sync_to_async(make_user)("asker")
        await sync_to_async(make_document)("guide.md", everyone=True)
        client = AsyncClient()
        await client.aforce_login(user)
        return client
