"""Every example of the Chat UI's specification with a single message, whole and streamed."""

import json
import re
import time
from itertools import pairwise

from chat.llm import ModelError
from chat.models import Agent
from chat.tests.golden_exchange import FILE, WORDS, GoldenTestCase, golden
from chat.tests.scripted_model import ScriptedModel
from history.models import Conversation

TIME = r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z"
QUESTION = {"messages": [{"role": "user", "content": "What is included in the Northwind Health plan?"}]}
FAILURE = ModelError("upstream_unavailable")


class ChatUiTests(GoldenTestCase):
    def setUp(self):
        super().setUp()
        self.golden = golden("chat_ui")

    async def test_the_documented_request_is_answered_whole_as_documented(self):
        response = await self.post("/api/chat", self.golden["request"])
        self.assertEqual((response.status_code, response.headers["Content-Type"]), (200, "application/json"))
        self.like(self.golden["answer"], response.json())
        self.assertEqual(response.json()["status"], "completed")
        self.assertRegex(response.json()["createdAt"], TIME)

    async def test_what_an_answer_cites_comes_as_its_sources(self):
        answer = (await self.post("/api/chat", QUESTION)).json()
        self.like(self.golden["chunks"][-1], answer)
        self.assertEqual(len(answer["sources"]), 1)
        self.like(self.golden["source"], answer["sources"][0])
        self.assertTrue(answer["sources"][0]["url"].endswith("#page=91"))
        link = f"[{FILE}#page=91]({answer['sources'][0]['url']})"
        self.assertEqual(answer["content"], f"The plan {link}.")

    async def test_each_event_carries_the_text_so_far_of_the_same_message(self):
        begun = time.monotonic()
        model = ScriptedModel(words=["w "] * 30 + [WORDS[-1]], pause=0.01)
        events = [
            json.loads(text)
            for text in await self.events("/api/chat", QUESTION, model=model, Accept="text/event-stream")
        ]
        took = time.monotonic() - begun
        for event in events[:-1]:
            self.like(self.golden["chunks"][0], event)
        self.like(self.golden["chunks"][-1], events[-1])
        self.assertEqual({event["status"] for event in events[:-1]}, {"processing"})
        self.assertEqual(events[-1]["status"], "completed")
        self.assertEqual(len({event["messageId"] for event in events}), 1)
        for earlier, later in pairwise(events):
            self.assertTrue(later["content"].startswith(earlier["content"]))
        self.assertLessEqual(len(events), 10 * took + 1)

    async def test_events_are_framed_as_documented(self):
        documents = [part.removeprefix("data: ") for part in self.golden["events"].split("\n\n") if part]
        ours = await self.events("/api/chat/stream", QUESTION)
        for document, text in ((documents[0], ours[0]), (documents[-1], ours[-1])):
            self.like(
                json.loads(document), {k: v for k, v in json.loads(text).items() if k != "conversationId"}
            )

    async def test_the_suffix_takes_precedence_over_the_accept_header(self):
        response = await self.post("/api/chat/batch", QUESTION, Accept="text/event-stream")
        self.assertEqual(response.headers["Content-Type"], "application/json")

    async def test_a_failure_before_any_text_has_the_error_object_and_its_status(self):
        with self.assertLogs(level="WARNING"):
            response = await self.post("/api/chat", QUESTION, model=ScriptedModel(words=[], error=FAILURE))
        self.assertEqual(response.status_code, 502)
        self.like({"error": self.golden["error"]}, response.json())

    async def test_a_failure_after_text_is_a_failed_message_with_what_came(self):
        model = ScriptedModel(words=["Half"], error=FAILURE)
        with self.assertLogs(level="WARNING"):
            answer = (await self.post("/api/chat", QUESTION, model=model)).json()
            events = await self.events("/api/chat/stream", QUESTION, model=model)
        for message in (answer, json.loads(events[-1])):
            self.assertEqual((message["status"], message["content"]), ("failed", "Half"))
            self.like(self.golden["error"], message["error"])
            self.like(self.golden["answer"], message)

    async def test_only_a_named_conversation_is_listed(self):
        await self.post("/api/chat", QUESTION)
        self.assertFalse(await Conversation.objects.filter(listed=True).aexists())
        conversation = await Conversation.objects.acreate(owner=self.user)
        answer = await self.post("/api/chat", QUESTION | {"conversationId": str(conversation.pk)})
        self.assertEqual(answer.json()["conversationId"], str(conversation.pk))
        self.assertEqual(await conversation.messages.acount(), 2)


class TeamTests(GoldenTestCase):
    def setUp(self):
        super().setUp()
        Agent.objects.all().delete()
        for place, name in enumerate(("Research", "Code")):
            Agent.objects.create(name=name, instructions=f"You are {name}.", order=place)

    async def test_the_documented_array_of_messages_is_answered_whole(self):
        answer = (await self.post("/api/multi-agent-chat", QUESTION)).json()
        for example, message in zip(golden("chat_ui")["team"], answer, strict=True):
            example["sources"] = golden("chat_ui")["team"][0]["sources"]
            self.like(example, message)
            self.assertEqual((message["agentName"], message["status"]), (example["agentName"], "completed"))

    async def test_streamed_each_agent_has_its_own_message_and_the_whole_text_so_far(self):
        events = [json.loads(text) for text in await self.events("/api/multi-agent-chat/stream", QUESTION)]
        for event in events:
            self.like(golden("chat_ui")["team"][0] | {"sources": []}, event)
        names = list(dict.fromkeys((event["messageId"], event["agentName"]) for event in events))
        self.assertEqual([name for _, name in names], ["Research", "Code"])
        completed = [event["agentName"] for event in events if event["status"] == "completed"]
        self.assertEqual(completed, ["Research", "Code"])

    async def test_the_minimal_format_names_each_author(self):
        whole = (await self.post("/api/minimal/multi-agent-chat", QUESTION)).json()
        events = await self.events("/api/minimal/multi-agent-chat/stream", QUESTION)
        for messages in (whole, [json.loads(text) for text in events]):
            for member in ("AuthorName", "authorName"):
                self.assertEqual([message[member] for message in messages], ["Research", "Code"])
            self.assertEqual(len({message["Metadata"]["Id"] for message in messages}), 2)


class MinimalTests(GoldenTestCase):
    def check(self, message):
        self.like(golden("chat_ui_minimal")["answer"][0]["Items"][0]["Text"], message["Items"][0]["Text"])
        self.assertEqual(set(message), {"Role", "Items", "content", "ModelId", "Metadata", "verification"})
        # Its client read `Items` up to April 2025, and reads `content` since.
        self.assertEqual(message["content"], message["Items"][0]["Text"])
        self.assertEqual(message["Role"], {"Label": "Assistant"})
        [item] = message["Items"]
        self.assertEqual(set(item), {"$type", "Text"})
        self.assertEqual(item["$type"], "TextContent")
        self.assertEqual(re.sub(r"\(/content/[^)]*\)", "", item["Text"]), "".join(WORDS))
        self.assertRegex(message["Metadata"]["CreatedAt"], TIME)
        self.assertTrue(message["Metadata"]["Id"])

    async def test_whole_it_is_an_array_with_one_object(self):
        (message,) = (await self.post("/api/minimal/chat", QUESTION)).json()
        self.check(message)

    async def test_streamed_each_event_is_one_finished_message(self):
        (event,) = await self.events("/api/minimal/chat/stream", QUESTION)
        self.check(json.loads(event))

    async def test_a_failure_is_reported_where_the_client_reads_it(self):
        model = ScriptedModel(words=["Half"], error=FAILURE)
        with self.assertLogs(level="WARNING"):
            (event,) = await self.events("/api/minimal/chat/stream", QUESTION, model=model)
            (message,) = (await self.post("/api/minimal/chat", QUESTION, model=model)).json()
            refused = await self.post(
                "/api/minimal/chat", QUESTION, model=ScriptedModel(words=[], error=FAILURE)
            )
        for told in (json.loads(event), message):
            self.assertEqual([item["Text"][:4] for item in told["Items"]], ["Half", "The "])
            self.assertTrue(told["Metadata"]["Id"])
            self.assertEqual(told["error"]["code"], "upstream_unavailable")
        self.assertEqual((refused.status_code, set(refused.json())), (502, {"error"}))
