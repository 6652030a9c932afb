"""Refusals before the first byte: in each protocol's form, with the member's name, and nothing is stored."""

import json
from copy import deepcopy
from unittest import mock
from uuid import uuid4

import pytest
from django.test import SimpleTestCase, override_settings

from chat.errors import Refused
from chat.llm import ModelError
from chat.protocols import (
    AiChatProtocol,
    ChatCompletions,
    ChatUi,
    ChatUiMinimal,
    OpenAI,
    OpenAICompletions,
    RagChat,
    Responses,
)
from chat.requests import InvalidRequest
from chat.tests.golden_exchange import GoldenTestCase
from chat.tests.scripted_model import ScriptedModel
from chatsite.db.threads import in_database
from history.models import Conversation, Message
from ingestion.tests.factories import make_user

ASKED = {"messages": [{"role": "user", "content": "What is included?"}]}
OVERRIDES = {
    "top": 3,
    "temperature": 0.5,
    "retrieval_mode": "text",
    "suggest_followup_questions": False,
    "vector_fields": ["embedding"],
    "minimum_search_score": 0.1,
    "include_category": "hr",
}
CONTEXT = {"context": {"overrides": OVERRIDES}}
# Path, protocol, a request in which every position is filled.
CHAT_REQUESTS = {
    "rag_chat": ("/chat", RagChat(), ASKED | CONTEXT | {"session_state": None}),
    "rag_chat streamed": ("/chat/stream", RagChat(), ASKED | CONTEXT | {"session_state": None}),
    "ai_chat_protocol": ("/chat", AiChatProtocol(), ASKED | CONTEXT | {"sessionState": None}),
    "chat_completions": ("/chat", ChatCompletions(), ASKED | CONTEXT | {"stream": False}),
    "single turn": ("/ask", RagChat(), ASKED | CONTEXT | {"session_state": None}),
    "chat_ui": ("/api/chat", ChatUi(), ASKED | {"conversationId": None}),
    "chat_ui_minimal": ("/api/minimal/chat", ChatUiMinimal(), ASKED | {"conversationId": None}),
    "openai": (
        "/v1/chat/completions",
        OpenAI(),
        ASKED
        | {"model": "m", "stream": False, "temperature": 1, "n": 1, "max_tokens": 5, "stop": ["."], "seed": 1}
        | {"response_format": {"type": "text"}, "tools": [{}], "tool_choice": "auto", "metadata": {"a": "b"}},
    ),
}
RESPONSE = {
    "model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "How?"}]}],
    "instructions": "x", "stream": False, "store": True, "background": False, "temperature": 1, "top_p": 1,
    "max_output_tokens": 5, "text": {"format": {"type": "text"}, "verbosity": "low"}, "include": [],
    "tools": [{}], "reasoning": {"effort": "low", "summary": "auto"}, "metadata": {"a": "b"},
    "truncation": "auto", "previous_response_id": f"resp_{'0' * 32}",
}  # fmt: skip
EVERY_POSITION = CHAT_REQUESTS | {
    "openai, a prompt": (
        "/v1/completions",
        OpenAICompletions(),
        {"prompt": "How?", "max_tokens": 5, "echo": False},
    ),
    "responses": ("/v1/responses", Responses(), RESPONSE),
}
VALUES = (None, True, 0, -1, 1.5, 10**400, "", "x", "a\x00b", [], [None], ["x"], {}, {"x": 1})


def positions(value, path=()):
    """The path of every value inside a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from positions(item, (*path, name))


def changed(value, path, new):
    if not path:
        return new
    value = deepcopy(value)
    inner = value
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = new
    return value


def spelled(path):
    """A path as errors write it, such as messages[0].content."""
    return "".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in path).removeprefix(".")


def read(protocol, body):
    if isinstance(protocol, OpenAI):
        protocol = type(protocol).of(body)
    if isinstance(protocol, ChatCompletions | OpenAI):
        protocol.streams(body)
    return protocol.parse(body)


def without_overrides(body):
    return {name: value for name, value in body.items() if name != "context"}


def words(body):
    """The message of an error in any protocol's form."""
    error = body["error"]
    return error if isinstance(error, str) else error["message"]


@pytest.mark.slow
class EveryPositionTests(SimpleTestCase):
    def test_any_value_anywhere_is_accepted_or_refused_with_its_member(self):
        refused = 0
        for name, (_, protocol, body) in EVERY_POSITION.items():
            for path in positions(body):
                for value in VALUES:
                    told = changed(body, path, value)
                    with self.subTest(name, path=path, value=str(value)[:20]):
                        try:
                            read(protocol, told)
                        except InvalidRequest as error:
                            refused += 1
                            self.assertIn(error.status, (400, 404))
                            if path and error.status == 400:
                                self.assertTrue(error.member, error.message)
                                start = spelled(path).split("[")[0].split(".")[0]
                                self.assertTrue(error.member.startswith(start), error.member)
                                self.assertIn(error.member, error.message)
                            json.dumps(
                                protocol.error(error.message, status=error.status, member=error.member)
                            )
        self.assertGreater(refused, 500)


# The Chat UI sends its own error bubbles back as system messages; OpenAI's are wishes of the caller.
SYSTEM_IS_READ = ("openai", "chat_ui", "chat_ui_minimal")


@pytest.mark.slow
class RefusalTests(GoldenTestCase):
    def check_form(self, protocol, response, status):
        body = response.json()
        self.assertEqual(response.status_code, status, body)
        if isinstance(protocol, ChatCompletions) and "message" in body:
            self.assertEqual(body, {"error": mock.ANY, "message": body["error"], "statusCode": status})
        else:
            self.assertEqual(set(body), {"error"})
        if isinstance(protocol, OpenAI):
            self.assertEqual(set(body["error"]), {"message", "type", "param", "code"})
        elif isinstance(protocol, ChatUi):
            self.assertEqual(set(body["error"]), {"message", "code"})
            self.assertIsInstance(body["error"]["code"], str)
        self.assertIsInstance(words(body), str)

    async def refused_everywhere(self, status, change=dict, member="", leave_out=(), **options):
        for name, (path, protocol, body) in CHAT_REQUESTS.items():
            if name in leave_out:
                continue
            with self.subTest(name):
                response = await self.post(path, change(body), **options)
                self.check_form(protocol, response, status)
                self.assertIn(member, words(response.json()))
                if isinstance(protocol, OpenAI) and member:
                    self.assertEqual(response.json()["error"]["param"], member)
        self.assertEqual(await Message.objects.acount(), 0)

    async def test_unknown_roles_are_refused_and_system_outside_openai(self):
        for role in ("system", "developer", "tool", "User", 5):
            messages = [{"role": role, "content": "x"}, *ASKED["messages"]]
            await self.refused_everywhere(
                400,
                lambda body, told=messages: body | {"messages": told},
                "messages[0].role",
                leave_out={"system": SYSTEM_IS_READ, "developer": ("openai",), "tool": ("openai",)}.get(
                    role, ()
                ),
            )

    async def test_an_empty_list_and_a_last_message_of_another_role_are_refused(self):
        await self.refused_everywhere(400, lambda body: body | {"messages": []}, "messages")
        messages = [*ASKED["messages"], {"role": "assistant", "content": "x"}]
        await self.refused_everywhere(400, lambda body: body | {"messages": messages}, "messages[1].role")

    async def test_an_overlong_message_is_refused(self):
        messages = [{"role": "user", "content": "x" * 32_001}]
        await self.refused_everywhere(400, lambda body: body | {"messages": messages})

    async def test_broken_json_is_refused(self):
        for body in (b"{broken", b"\xff\xfe", b'{"messages": NaN}', b"[" * 50_000):
            await self.refused_everywhere(400, lambda _, body=body: body)
        response = await self.post("/chat", b'{"messages": [{"role": "user"}')
        self.assertEqual(response.json()["error"], "The body is not valid JSON (line 1, column 30).")

    async def test_a_missing_list_is_reported_as_missing(self):
        response = await self.post("/chat", {"message": "How?"})
        self.assertEqual(response.json()["error"], "“messages” is missing.")
        response = await self.post("/chat", {"messages": "How?"})
        self.assertEqual(response.json()["error"], "“messages” must be a list.")

    async def test_callers_without_a_valid_key_are_refused(self):
        for header in ("", "Basic YTpi", "Bearer wrong"):
            await self.refused_everywhere(401, Authorization=header)

    async def test_errors_of_chat_completions_have_three_members(self):
        path, _, body = CHAT_REQUESTS["chat_completions"]
        messages = [{"role": "system", "content": "x"}]
        for told, status, options in (
            (body, 401, {"Authorization": "Bearer wrong"}),
            (body, 401, {"Authorization": ""}),
            (body, 406, {"Accept": "application/xml"}),
            (body | {"messages": messages}, 400, {}),
            (body | {"stream": "yes"}, 400, {}),
            (body | {"session_state": str(uuid4())}, 404, {}),
        ):
            with self.subTest(status=status, options=options):
                response = await self.post(path, told, **options)
                self.assertEqual(response.status_code, status)
                self.assertEqual(
                    response.json(),
                    {"error": mock.ANY, "message": response.json()["error"], "statusCode": status},
                )

    async def test_other_media_types_and_methods_are_refused(self):
        await self.refused_everywhere(415, lambda _: b"a=b", content_type="text/plain")
        response = await self.post("/chat", b"a=b", content_type="text/plain")
        self.assertIn("application/json", response.json()["error"])
        await self.refused_everywhere(406, Accept="application/xml")
        await self.refused_everywhere(406, Accept="application/json;q=0")
        for name, (path, protocol, _) in CHAT_REQUESTS.items():
            with self.subTest(name):
                response = await self.async_client.get(path)
                self.check_form(protocol, response, 405)
                self.assertEqual(response.headers["Allow"], "POST")

    async def test_common_accept_headers_are_taken(self):
        for accept in (
            "*/*",
            "application/json, text/plain;q=0.5",
            "application/json;q=0.9",
            "text/event-stream",
        ):
            response = await self.post("/api/chat/batch", ASKED, Accept=accept)
            self.assertEqual(response.status_code, 200, accept)

    async def test_another_persons_session_is_not_found_in_every_protocol(self):
        theirs = await Conversation.objects.acreate(owner=await in_database(make_user, "other"))
        for name, member in (
            ("rag_chat", "session_state"),
            ("ai_chat_protocol", "sessionState"),
            ("chat_completions", "session_state"),
            ("chat_ui", "conversationId"),
            ("chat_ui_minimal", "conversationId"),
        ):
            path, protocol, body = CHAT_REQUESTS[name]
            told = []
            for session in (str(theirs.pk), str(uuid4()), "x", ""):
                response = await self.post(path, body | {member: session})
                self.check_form(protocol, response, 404)
                told.append(response.content)
            self.assertEqual(len(set(told)), 1, name)
        self.assertEqual(await Message.objects.acount(), 0)

    async def test_a_conversation_id_of_the_chat_ui_must_be_text(self):
        for name in ("chat_ui", "chat_ui_minimal"):
            path, protocol, body = CHAT_REQUESTS[name]
            for value in ({}, [], 1, {"chatsite_conversation": str(uuid4())}):
                response = await self.post(path, body | {"conversationId": value})
                self.check_form(protocol, response, 400)
                self.assertIn("conversationId", response.content.decode())

    async def test_overrides_out_of_range_are_refused_by_name(self):
        for name, value in (
            ("top", 0), ("top", 51), ("top", 2.5), ("top", True), ("temperature", -0.1), ("temperature", 2.1),
            ("temperature", "hot"), ("retrieval_mode", "best"), ("suggest_followup_questions", "yes"),
            ("semantic_ranker", 1), ("semantic_captions", 0), ("vector_fields", "embedding"),
            ("vector_fields", ["x"]), ("use_gpt4v", "no"), ("gpt4v_input", "video"),
            ("use_oid_security_filter", 0), ("use_groups_security_filter", []), ("minimum_search_score", 2),
            ("include_category", 1), ("exclude_category", []),
        ):  # fmt: skip
            body = ASKED | {"context": {"overrides": {name: value}}}
            response = await self.post("/chat", body)
            self.assertEqual(response.status_code, 400, (name, value))
            self.assertIn(f"“context.overrides.{name}”", response.json()["error"])
        self.assertEqual(await Message.objects.acount(), 0)

    async def test_files_in_json_are_refused(self):
        for name in ("rag_chat", "ai_chat_protocol", "chat_completions", "chat_ui"):
            path, protocol, body = CHAT_REQUESTS[name]
            messages = [ASKED["messages"][0] | {"files": [{"contentType": "image/png", "data": {}}]}]
            response = await self.post(path, body | {"messages": messages})
            self.check_form(protocol, response, 400)
            self.assertIn("messages[0].files", words(response.json()))
        messages = [ASKED["messages"][0] | {"files": []}]
        self.assertEqual((await self.post("/chat", {"messages": messages})).status_code, 200)

    async def test_too_many_questions_say_when_to_retry(self):
        limited = ScriptedModel(words=[], error=ModelError("rate_limited"))
        for name, (path, protocol, body) in CHAT_REQUESTS.items():
            if "stream" in path:
                continue
            with self.subTest(name):
                with self.assertLogs(level="WARNING"):
                    response = await self.post(path, without_overrides(body), model=limited)
                self.check_form(protocol, response, 429)
                self.assertGreater(int(response.headers["Retry-After"]), 0)
                with mock.patch("chat.runs.begin", side_effect=Refused("rate_limited", retry_after=7)):
                    response = await self.post(path, body)
                self.check_form(protocol, response, 429)
                self.assertEqual(response.headers["Retry-After"], "7")

    async def test_every_failure_of_the_model_has_its_status_and_message(self):
        for code, status in (
            ("upstream_unavailable", 502),
            ("upstream_timeout", 504),
            ("context_overflow", 400),
            ("content_filter", 400),
            ("empty_answer", 502),
        ):
            for name in ("rag_chat", "ai_chat_protocol", "chat_completions", "chat_ui", "openai"):
                if (name, code) == ("openai", "content_filter"):
                    continue  # for OpenAI's clients that is a finish reason, not an error
                path, protocol, body = CHAT_REQUESTS[name]
                with self.assertLogs(level="WARNING"):
                    model = ScriptedModel(words=[], error=ModelError(code))
                    response = await self.post(path, without_overrides(body), model=model)
                self.check_form(protocol, response, status)

    async def test_conflicts_are_reported_in_every_protocol(self):
        for code, status in (("generation_in_progress", 409), ("idempotency_mismatch", 422), ("busy", 503)):
            with mock.patch("chat.runs.begin", side_effect=Refused(code)):
                await self.refused_everywhere(status)

    async def test_internal_errors_are_reported_in_every_protocol_without_details(self):
        with mock.patch("chat.runs.begin", side_effect=RuntimeError("a secret detail")):
            for name, (path, protocol, body) in CHAT_REQUESTS.items():
                with self.subTest(name), self.assertLogs("django"):
                    self.async_client.raise_request_exception = False
                    response = await self.async_client.post(
                        path,
                        body,
                        content_type="application/json",
                        headers={"Authorization": f"Bearer {self.secret}"},
                    )
                    self.check_form(protocol, response, 500)
                    self.assertNotIn("secret", response.text)

    @override_settings(MESSAGE_MAX_CHARACTERS=10)
    async def test_a_refusal_while_following_ends_the_stream_in_its_protocol(self):
        for path, form in (
            ("/chat/stream", {"error": mock.ANY}),
            ("/api/chat/stream", {"error": {"message": mock.ANY, "code": "not_found"}}),
            ("/v1/chat/completions", {"error": mock.ANY}),
        ):
            with mock.patch("chat.runs.watch", side_effect=Refused("not_found")):
                body = {"messages": [{"role": "user", "content": "Leave?"}], "stream": True}
                response = await self.post(path, body)
            last = response.body[-1].removeprefix(b"data: ")
            self.assertEqual(json.loads(last), form)
