"""OpenAI's chat completions: the shapes that its reference shows, whole and streamed."""

import json

from chat.llm import ModelError
from chat.tests.golden_exchange import VERIFIED, WORDS, GoldenTestCase
from chat.tests.scripted_model import ScriptedModel
from history.models import Conversation

PATH = "/v1/chat/completions"
ASKED = {"model": "any", "messages": [{"role": "user", "content": "What is included in the Northwind plan?"}]}
ENVELOPE = {"id": "x", "created": 1, "model": "x", "system_fingerprint": None}
SOURCE = {"sourcepage": "x", "title": "x", "content": "x", "score": 0.5}
CITED = {"start_index": 9, "end_index": 20, "title": "x", "url": "http://testserver/content/"}
ANNOTATIONS = [{"type": "url_citation", "url_citation": CITED}]
WHOLE = ENVELOPE | {
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "x", "refusal": None, "annotations": ANNOTATIONS},
            "finish_reason": "stop",
            "logprobs": None,
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    "sources": [SOURCE],
    "verification": [VERIFIED],
}


def chunk(delta, finish_reason=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
    return ENVELOPE | {"object": "chat.completion.chunk", "choices": [choice]}


class OpenAITests(GoldenTestCase):
    async def test_a_whole_answer_has_the_shape_of_a_completion(self):
        answer = (await self.post(PATH, ASKED)).json()
        self.like(WHOLE, answer)
        message = answer["choices"][0]["message"]
        self.assertEqual(message["content"], "".join(WORDS))
        [note] = message["annotations"]
        place = note["url_citation"]
        self.assertEqual(message["content"][place["start_index"] : place["end_index"]], f"[{place['title']}]")
        self.assertTrue(place["url"].startswith("http://testserver/content/"))
        self.assertTrue(place["url"].endswith("#page=91"))

    async def test_a_stream_goes_from_the_role_to_the_end_mark(self):
        *events, last = await self.events(PATH, ASKED | {"stream": True}, alone=False)
        self.assertEqual(last, "[DONE]")
        first, *middle, end = [json.loads(text) for text in events]
        self.like(chunk({"role": "assistant", "content": ""}), first)
        for event in middle:
            self.like(chunk({"content": "x"}), event)
        self.like(
            chunk({"annotations": ANNOTATIONS}, "stop") | {"sources": [SOURCE], "verification": [VERIFIED]},
            end,
        )
        self.assertEqual("".join(event["choices"][0]["delta"]["content"] for event in middle), "".join(WORDS))
        self.assertEqual(len({event["id"] for event in (first, *middle, end)}), 1)

    async def test_usage_comes_in_a_last_chunk_if_requested(self):
        body = ASKED | {"stream": True, "stream_options": {"include_usage": True}}
        *_, counted, last = await self.events(PATH, body, alone=False)
        self.assertEqual(last, "[DONE]")
        self.like(chunk({}) | {"choices": [], "usage": WHOLE["usage"]}, json.loads(counted))

    async def test_a_failure_in_the_stream_is_an_error_event(self):
        model = ScriptedModel(words=["Half"], error=ModelError("upstream_unavailable"))
        with self.assertLogs(level="WARNING"):
            *_, last = await self.events(PATH, ASKED | {"stream": True}, model=model, alone=False)
        error = json.loads(last)["error"]
        self.assertEqual((error["type"], error["code"]), ("server_error", "upstream_unavailable"))
        self.assertEqual(set(error), {"message", "type", "param", "code"})

    async def test_conversations_of_this_api_are_not_listed(self):
        await self.post(PATH, ASKED)
        self.assertFalse(await Conversation.objects.filter(listed=True).aexists())

    async def test_the_models_are_listed(self):
        response = await self.async_client.get(
            "/v1/models", headers={"Authorization": f"Bearer {self.secret}"}
        )
        model = {"id": "x", "object": "model", "created": 1, "owned_by": "x"}
        self.like({"object": "list", "data": [model]}, response.json())

    async def test_anonymous_callers_cannot_list_models(self):
        response = await self.async_client.get("/v1/models", headers={"Authorization": "Bearer wrong"})
        self.assertEqual(response.status_code, 401)
        self.assertEqual(response.json()["error"]["type"], "authentication_error")
