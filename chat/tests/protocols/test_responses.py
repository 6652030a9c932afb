"""`/v1/responses`: the published shapes and events, and resuming a response's run."""

import asyncio
import json
import uuid
from datetime import timedelta

from django.test import AsyncClient, override_settings
from django.utils import timezone

from chat.events import ContextReady, Failed, Finished, MessageDone, Started, TextDelta
from chat.llm import ModelError, use_model
from chat.llm.chat_model import (
    NOTHING_FITS,
    messages,
)
from chat.models import JournalEntry, Run
from chat.protocols import Responses
from chat.quoting.quoting_model import QuotingModel
from chat.tests.golden_exchange import FILE, WORDS, GoldenTestCase
from chat.tests.scripted_model import ScriptedModel
from chatsite.accounts.models import ApiKey
from history.models import Conversation, Message, Source
from ingestion.models import Document
from ingestion.tests.factories import make_user

PATH = "/v1/responses"
QUESTION = "What is included in the Northwind plan?"
ASKED = {"model": "any", "input": QUESTION}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
AS_JSON = {"format": {"type": "json_schema", "name": "plan", "schema": SCHEMA, "strict": True}}
ANSWER = "".join(WORDS)
SEQUENCE = [
    "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
    "response.output_text.delta", "response.output_text.annotation.added", "response.output_text.done",
    "response.content_part.done", "response.output_item.done", "response.completed",
]  # fmt: skip


class ResponsesTestCase(GoldenTestCase):
    def setUp(self):
        super().setUp()
        self.other = ApiKey.objects.issue(make_user("stranger"), "other")[1]

    async def asked(self, model=None, status=200, **members):
        response = await self.post(PATH, ASKED | members, model=model or ScriptedModel(words=WORDS))
        self.assertEqual(response.status_code, status, response.content)
        return response.json()

    async def streamed(self, model=None, **members):
        response = await self.post(PATH, ASKED | members | {"stream": True}, model=model)
        return self.read(response.body)

    async def call(self, method, path, secret=None, model=None):
        headers = {"Authorization": f"Bearer {secret or self.secret}"}
        with use_model(model or ScriptedModel(words=WORDS)):
            response = await getattr(AsyncClient(), method)(f"{PATH}/{path}", headers=headers)
            if response.streaming:
                response.body = [chunk async for chunk in response.streaming_content]
        return response

    def read(self, pieces):
        events = b"".join(pieces).decode().split("\n\n")[:-1]
        told = []
        for event in events:
            name, data = event.split("\n")
            told.append(json.loads(data.removeprefix("data: ")))
            self.assertEqual(name, f"event: {told[-1]['type']}")
        return told

    async def until_ended(self, response_id):
        for _ in range(200):
            told = (await self.call("get", response_id)).json()
            if told["status"] not in ("queued", "in_progress"):
                return told
            await asyncio.sleep(0.02)
        raise AssertionError("the response does not end")


class ResponseTests(ResponsesTestCase):
    async def test_a_whole_response_has_the_published_shape(self):
        told = await self.asked(metadata={"a": "b"}, temperature=0.5, instructions="Be brief.")
        self.assertEqual((told["object"], told["status"], told["error"]), ("response", "completed", None))
        self.assertRegex(told["id"], r"\Aresp_[0-9a-f]{32}\Z")
        (item,) = told["output"]
        self.assertEqual((item["type"], item["role"], item["status"]), ("message", "assistant", "completed"))
        (part,) = item["content"]
        self.assertEqual((part["type"], part["text"]), ("output_text", ANSWER))
        self.assertEqual(
            (told["metadata"], told["temperature"], told["instructions"]), ({"a": "b"}, 0.5, "Be brief.")
        )
        self.assertEqual(told["usage"]["total_tokens"], 0)
        self.assertTrue(told["sources"])

    async def test_a_stored_response_is_not_cached(self):
        told = await self.asked()
        headers = (await self.call("get", told["id"])).headers
        self.assertEqual(headers["Cache-Control"], "private, no-store")
        for name in ("Authorization", "api-key", "X-Api-Key", "Cookie"):
            self.assertIn(name, headers["Vary"])

    async def test_annotations_give_the_positions_of_cited_files(self):
        words = ["🙂 Grüße: ", f"the plan [{FILE}#page=91]; also [{FILE}#page=17]", f"[{FILE}#page=91]."]
        part = (await self.asked(ScriptedModel(words=words)))["output"][0]["content"][0]
        document = await Document.objects.aget()
        self.assertEqual(len(part["annotations"]), 3)
        for note, page in zip(part["annotations"], (91, 17, 91), strict=True):
            self.assertEqual((note["type"], note["filename"]), ("file_citation", FILE))
            self.assertEqual(note["file_id"], str(document.public_id))
            self.assertTrue(part["text"][note["index"] :].startswith(f"[{FILE}#page={page}]"))

    async def test_a_stream_has_the_published_sequence(self):
        told = await self.streamed()
        kinds = [event["type"] for event in told]
        self.assertEqual(list(dict.fromkeys(kinds)), SEQUENCE)
        numbers = [event["sequence_number"] for event in told]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertEqual(numbers[0], 0)
        deltas = [event["delta"] for event in told if event["type"] == "response.output_text.delta"]
        self.assertEqual("".join(deltas), ANSWER)
        self.assertEqual(told[0]["response"]["status"], "in_progress")
        final = told[-1]["response"]
        self.assertEqual((await self.call("get", final["id"])).json(), final)

    async def test_a_question_continues_the_conversation_of_the_previous_response(self):
        first = await self.asked()
        model = ScriptedModel(words=["More."])
        second = await self.asked(model, input="And part-time staff?", previous_response_id=first["id"])
        self.assertEqual(second["previous_response_id"], first["id"])
        self.assertEqual(await Conversation.objects.filter(listed=True).acount(), 1)
        self.assertIn(ANSWER, [turn.content for turn in model.prompts[0].earlier])

    async def test_continuing_an_earlier_response_starts_a_conversation_of_its_own(self):
        first = await self.asked()
        await self.asked(ScriptedModel(words=["Second."]), input="And?", previous_response_id=first["id"])
        model = ScriptedModel(words=["Other."])
        other = await self.asked(model, input="What else?", previous_response_id=first["id"])
        self.assertEqual([turn.content for turn in model.prompts[0].earlier], [QUESTION, ANSWER])
        self.assertEqual(await Conversation.objects.filter(listed=True).acount(), 2)
        model = ScriptedModel(words=["Third."])
        await self.asked(model, input="And then?", previous_response_id=other["id"])
        self.assertEqual(
            [turn.content for turn in model.prompts[0].earlier], [QUESTION, ANSWER, "What else?", "Other."]
        )
        newest = await Conversation.objects.filter(listed=True).alatest("created_at")
        self.assertEqual(await newest.messages.acount(), 6)
        self.assertTrue(await Source.objects.filter(message__conversation=newest).aexists())

    async def test_a_repeated_key_gets_the_same_continuation(self):
        first = await self.asked()
        body = ASKED | {"input": "And?", "previous_response_id": first["id"]}
        for _ in range(2):  # in the conversation of the first response, then in one of its own
            key = {"Idempotency-Key": str(uuid.uuid4())}
            one, other = [
                (await self.post(PATH, body, model=ScriptedModel(words=WORDS), **key)).json()["id"]
                for _ in range(2)
            ]
            self.assertEqual(one, other)

    async def test_withdrawn_sources_are_not_named_to_the_model_again(self):
        first = await self.asked()
        await self.asked(ScriptedModel(words=["Second."]), input="And?", previous_response_id=first["id"])
        reference = {"type": "item_reference", "id": first["output"][0]["id"]}
        earlier = {
            "fork": {"previous_response_id": first["id"], "input": "What else?"},
            "reference": {"input": [reference, {"role": "user", "content": "What else?"}]},
        }
        await Document.objects.all().adelete()
        for way, members in earlier.items():
            model = ScriptedModel(words=["Other."])
            await self.asked(model, **members)
            self.assertTrue(model.prompts[0].earlier, way)
            self.assertNotIn(FILE, repr(model.prompts[0].earlier), way)

    async def test_a_client_that_keeps_the_conversation_may_name_stored_messages(self):
        first = await self.asked()
        said = [
            {"role": "user", "content": QUESTION},
            {"type": "item_reference", "id": first["output"][0]["id"]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"role": "user", "content": [{"type": "input_text", "text": "And part-time staff?"}]},
        ]
        model = ScriptedModel(words=["More."])
        await self.asked(model, input=said)
        self.assertEqual([turn.content for turn in model.prompts[0].earlier], [QUESTION, ANSWER])
        self.assertEqual(await Conversation.objects.filter(listed=True).acount(), 1)

    async def test_instructions_and_system_items_are_preferences(self):
        model = ScriptedModel(words=WORDS)
        said = [{"role": "developer", "content": "In French."}, {"role": "user", "content": QUESTION}]
        await self.asked(model, input=said, instructions="Be brief.")
        system, told = messages(model.prompts[0])
        self.assertNotIn("French", system["content"])
        self.assertIn("> Be brief.\n> \n> In French.", told["content"])

    async def test_json_by_a_schema_with_its_citations(self):
        model = ScriptedModel(words=['{"text": "All ', f'[{FILE}#page=91] [secret.pdf]"}}'])
        told = await self.asked(model, text=AS_JSON)
        part = told["output"][0]["content"][0]
        self.assertEqual(json.loads(part["text"]), {"text": f"All [{FILE}#page=91]"})
        self.assertEqual(len(part["annotations"]), 1)
        self.assertEqual(told["text"]["format"]["name"], "plan")
        refused = await self.asked(QuotingModel(), 400, text=AS_JSON)
        self.assertEqual(refused["error"]["param"], "text.format")

    async def test_without_matching_sources_json_is_refused_with_a_message(self):
        await Document.objects.all().adelete()
        part = (await self.asked(text=AS_JSON))["output"][0]["content"][0]
        self.assertEqual(part, {"type": "refusal", "refusal": NOTHING_FITS})
        told = await self.streamed(text=AS_JSON)
        kinds = {event["type"] for event in told}
        self.assertTrue({"response.refusal.delta", "response.refusal.done"} <= kinds)
        self.assertNotIn("response.output_text.delta", kinds)

    async def test_a_truncated_or_filtered_answer_is_incomplete(self):
        told = await self.asked(ScriptedModel(words=["Half"], reason="length"), max_output_tokens=5)
        self.assertEqual(
            (told["status"], told["incomplete_details"]), ("incomplete", {"reason": "max_output_tokens"})
        )
        model = ScriptedModel(words=["Half"], error=ModelError("content_filter"))
        with self.assertLogs(level="WARNING"):
            told = (await self.streamed(model))[-1]
        self.assertEqual(told["type"], "response.incomplete")
        self.assertEqual(told["response"]["incomplete_details"], {"reason": "content_filter"})
        self.assertEqual(told["response"]["output"][0]["status"], "incomplete")

    async def test_a_failure_is_an_error_and_a_failed_response(self):
        model = ScriptedModel(words=["Half"], error=ModelError("upstream_unavailable"))
        with self.assertLogs(level="WARNING"):
            told = (await self.streamed(model))[-1]
        self.assertEqual((told["type"], told["response"]["status"]), ("response.failed", "failed"))
        self.assertEqual(told["response"]["error"]["code"], "server_error")
        stored = (await self.call("get", told["response"]["id"])).json()
        self.assertEqual((stored["status"], stored["output"][0]["content"][0]["text"]), ("failed", "Half"))
        with self.assertLogs(level="WARNING"):
            response = await self.post(PATH, ASKED, model=model)
        self.assertEqual((response.status_code, response.json()["error"]["type"]), (502, "server_error"))

    async def test_options_that_clients_add_for_tools_and_reasoning_are_accepted(self):
        """The AI SDK adds `include` to each request that offers its web search or code interpreter."""
        reasoning = {"effort": "max", "summary": None, "context": "auto", "mode": "standard"}
        included = ["web_search_call.action.sources", "code_interpreter_call.outputs"]
        offered = [{"type": "web_search"}, {"type": "code_interpreter"}]
        told = await self.asked(
            tools=offered, include=included, reasoning=reasoning, prompt_cache_options={"mode": "implicit"}
        )
        self.assertEqual((told["status"], told["reasoning"]), ("completed", reasoning))

    async def test_unsupported_options_are_refused_by_name_and_nothing_is_stored(self):
        for member, body in (
            ("conversation", {"conversation": "conv_1"}),
            ("prompt", {"prompt": {"id": "x"}}),
            ("tool_choice", {"tools": [{"type": "web_search"}], "tool_choice": "required"}),
            ("include[0]", {"include": ["message.output_text.logprobs"]}),
            ("reasoning.summary", {"reasoning": {"summary": "detailed"}}),
            ("reasoning.mode", {"reasoning": {"mode": "pro"}}),
            ("text.format.type", {"text": {"format": {"type": "grammar"}}}),
            ("text.other", {"text": {"other": 1}}),
            ("background", {"background": True, "store": False}),
            ("top_logprobs", {"top_logprobs": 2}),
            ("max_output_tokens", {"max_output_tokens": 0}),
            ("input", {"input": []}),
            ("input[0]", {"input": [{"type": "computer_call"}]}),
            ("input[0].content[0]", {"input": [{"role": "user", "content": [{"type": "input_file"}]}]}),
            (
                "input[1].role",
                {"input": [*({"role": role, "content": "x"} for role in ("user", "assistant"))]},
            ),
            ("instructions", {"instructions": "x" * 10_001}),
        ):
            with self.subTest(member):
                error = (await self.asked(status=400, **body))["error"]
                self.assertEqual((error["type"], error["param"]), ("invalid_request_error", member))
        self.assertEqual(await Run.objects.acount(), 0)

    async def test_a_response_with_store_false_is_not_found_later(self):
        told = await self.asked(store=False)
        self.assertEqual((await self.call("get", told["id"])).status_code, 404)
        await self.asked(status=404, previous_response_id=told["id"])
        self.assertFalse(await Conversation.objects.filter(listed=True).aexists())

    async def test_a_question_with_store_false_is_not_added_to_a_listed_conversation(self):
        first = await self.asked()
        model = ScriptedModel(words=["More."])
        second = await self.asked(model, input="And?", previous_response_id=first["id"], store=False)
        self.assertEqual([turn.content for turn in model.prompts[0].earlier], [QUESTION, ANSWER])
        self.assertEqual((await self.call("get", second["id"])).status_code, 404)
        self.assertEqual(await Conversation.objects.filter(listed=True).acount(), 1)
        self.assertFalse(await Message.objects.filter(content="And?", conversation__listed=True).aexists())

    async def test_responses_of_others_are_not_found(self):
        told = await self.asked()
        nothing = f"resp_{uuid.uuid4().hex}"
        missing = await self.call("get", nothing, self.other)
        for method, path in (("get", ""), ("get", "?stream=true"), ("delete", ""), ("post", "/cancel")):
            with self.subTest(method + path):
                refused = await self.call(method, told["id"] + path, self.other)
                self.assertEqual((refused.status_code, refused.json()), (404, missing.json()))
        headers = {"Authorization": f"Bearer {self.other}"}
        reference = [
            {"type": "item_reference", "id": told["output"][0]["id"]},
            {"role": "user", "content": "And?"},
        ]
        for body in ({"previous_response_id": told["id"]}, {"input": reference}):
            self.assertEqual((await self.post(PATH, ASKED | body, **headers)).status_code, 404)
        self.assertEqual((await self.call("get", told["id"])).json(), told)

    async def test_deleting_a_response_deletes_its_conversation(self):
        told = await self.asked()
        deleted = await self.call("delete", told["id"])
        self.assertEqual(deleted.json(), {"id": told["id"], "object": "response", "deleted": True})
        self.assertEqual((await self.call("get", told["id"])).status_code, 404)
        first = await self.asked()
        await self.asked(input="And?", previous_response_id=first["id"])
        self.assertEqual((await self.call("delete", first["id"])).status_code, 400)

    async def test_withdrawn_sources_are_no_longer_annotated(self):
        told = await self.asked()
        await Document.objects.all().adelete()
        stored = (await self.call("get", told["id"])).json()
        self.assertEqual((stored["sources"], stored["output"][0]["content"][0]["annotations"]), ([], []))


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
class BackgroundTests(ResponsesTestCase):
    async def test_a_background_response_can_be_polled_until_it_ends(self):
        model = ScriptedModel(words=WORDS, pause=0.1)
        with use_model(model):
            begun = await self.asked(model, background=True)
            self.assertIn(begun["status"], ("queued", "in_progress"))
            self.assertEqual((begun["output"], begun["background"]), ([], True))
            told = await self.until_ended(begun["id"])
        self.assertEqual((told["status"], told["output"][0]["content"][0]["text"]), ("completed", ANSWER))

    async def test_a_cancelled_response_keeps_its_text(self):
        model = ScriptedModel(words=["Half "] * 1_000, pause=0.02)
        with use_model(model):
            begun = await self.asked(model, background=True)
            await asyncio.sleep(0.2)
            cancelled = (await self.call("post", f"{begun['id']}/cancel", model=model)).json()
            self.assertEqual(cancelled["status"], "cancelled")
            again = await self.call("post", f"{begun['id']}/cancel", model=model)
        self.assertEqual((again.status_code, again.json()), (200, cancelled))

    async def test_a_stream_resumes_after_any_event(self):
        told = await self.streamed(
            ScriptedModel(words=[f"{word} " for word in range(40)], pause=0.005), background=True
        )
        response_id = told[-1]["response"]["id"]
        text = told[-1]["response"]["output"][0]["content"][0]["text"]
        for event in (*told[:7], *told[-4:-1]):
            number = event["sequence_number"]
            rest = self.read(
                (await self.call("get", f"{response_id}?stream=true&starting_after={number}")).body
            )
            self.assertTrue(all(each["sequence_number"] > number for each in rest))
            seen = [each for each in told if each["sequence_number"] <= number]
            deltas = [
                each["delta"] for each in (*seen, *rest) if each["type"] == "response.output_text.delta"
            ]
            self.assertEqual("".join(deltas), text)
            self.assertEqual(rest[-1], told[-1])
        everything = self.read((await self.call("get", f"{response_id}?stream=true")).body)
        self.assertEqual([everything[0], everything[-1]], [told[0], told[-1]])

    async def test_long_after_the_end_a_stream_has_the_whole_text_and_the_end(self):
        told = await self.streamed()
        response_id = told[-1]["response"]["id"]
        await Run.objects.aupdate(finished_at=timezone.now() - timedelta(hours=1))
        await JournalEntry.objects.all().adelete()
        rest = self.read((await self.call("get", f"{response_id}?stream=true&starting_after=3001")).body)
        kinds = [event["type"] for event in rest]
        self.assertEqual(kinds, SEQUENCE[SEQUENCE.index("response.output_text.annotation.added") :])
        self.assertEqual((rest[1]["text"], rest[-1]["response"]), (ANSWER, told[-1]["response"]))
        self.assertTrue(all(event["sequence_number"] > 3001 for event in rest))

    async def test_long_after_a_failure_before_its_first_word_a_stream_has_only_the_end(self):
        with self.assertLogs(level="WARNING"):
            told = await self.streamed(ScriptedModel(words=[], error=ModelError("upstream_unavailable")))
        await Run.objects.aupdate(finished_at=timezone.now() - timedelta(hours=1))
        await JournalEntry.objects.all().adelete()
        path = f"{told[0]['response']['id']}?stream=true&starting_after=1"
        (end,) = self.read((await self.call("get", path)).body)
        self.assertEqual((end["type"], end["response"]["output"]), ("response.failed", []))

    async def test_a_stream_that_cannot_be_followed_ends_with_an_error_event(self):
        encoder = Responses().encoder()
        encoder.numbered(1, Started(str(uuid.uuid4()), "", "", str(uuid.uuid4()), "2026-01-05T09:30:00Z"))
        (error,) = encoder.encode(Failed("failed", "interrupted"))
        self.assertEqual((error["type"], error["code"], error["param"]), ("error", "interrupted", None))

    async def test_wrong_numbers_are_refused(self):
        told = await self.asked()
        for query in ("stream=true&starting_after=x", "stream=true&starting_after=-1", "stream=5"):
            self.assertEqual((await self.call("get", f"{told['id']}?{query}")).status_code, 400)


class DividedTextTests(ResponsesTestCase):
    async def test_a_reader_that_got_merged_text_resumes_after_it(self):
        """However the text was split, the parts seen before and after resuming make up the whole."""
        started = Started(str(uuid.uuid4()), "", "", str(uuid.uuid4()), "2026-01-05T09:30:00Z")
        before = [(1, started), (3, ContextReady((), ()))]
        after = [(64, MessageDone("stop", ())), (65, Finished("complete"))]
        joined = [*before, (63, TextDelta("x" * 60)), *after]
        apart = [*before, *((number, TextDelta("x")) for number in range(4, 64)), *after]
        for first, second in ((joined, apart), (apart, joined), (apart, apart)):
            told = self.encoded(first)
            for event in told:
                number = event["sequence_number"]
                if second is joined and 3_000 <= number < 62_000:
                    continue  # the site never joins text across the number at which a reader resumes
                rest = self.encoded(second, after=number)
                seen = [each for each in told if each["sequence_number"] <= number]
                deltas = [each["delta"] for each in (*seen, *rest) if "delta" in each]
                self.assertEqual("".join(deltas), "x" * 60, number)

    def encoded(self, events, after=-1):
        encoder = Responses(after=after).encoder()
        return [told for number, event in events for told in encoder.numbered(number, event)]
