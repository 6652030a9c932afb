"""`/mcp`: what clients of the Model Context Protocol find and read, and the errors, in two revisions."""

import asyncio
import json
from itertools import count
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.test import AsyncClient, Client, SimpleTestCase, TransactionTestCase, override_settings

from chat.llm import use_model
from chat.protocols import mcp, mcp_tools
from chat.protocols.framing import EVENT_STREAM
from chat.tests.held_model import HeldModel
from chat.tests.scripted_model import ScriptedModel
from chatsite.accounts.models import ApiKey
from chatsite.db.threads import in_database
from chatsite.tests.limits import MARGIN_SECONDS
from history.models import Conversation
from history.tally import GRADES, Grade
from ingestion.models import Document
from ingestion.tests.factories import make_document, make_user

QUESTION = "How many days of leave may employees carry over?"
BOTH = f"application/json, {EVENT_STREAM}"
ENVELOPE = {
    mcp.VERSION_KEY: mcp.CURRENT,
    mcp.CAPABILITIES_KEY: {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
NOWHERE = str(uuid4())
_numbers = count(1)


def old_message(method, **params):
    """A request of 2025-11-25, and its headers."""
    body = {"jsonrpc": "2.0", "id": next(_numbers), "method": method, "params": params}
    return body, {"Accept": BOTH, "MCP-Protocol-Version": mcp.HANDSHAKE[0]}


def new_message(method, **params):
    """A request of 2026-07-28, and its headers."""
    meta = ENVELOPE | params.pop("_meta", {})
    body, headers = old_message(method, **params, _meta=meta)
    headers |= {"MCP-Protocol-Version": mcp.CURRENT, "Mcp-Method": method}
    if name := params.get("name") or params.get("uri"):
        headers["Mcp-Name"] = name
    return body, headers


BOTH_REVISIONS = (old_message, new_message)


@override_settings(QUOTING_WORDS_PER_SECOND=10_000, JOURNAL_FLUSH_SECONDS=0.02)
class McpTestCase(TransactionTestCase):
    def setUp(self):
        self.board = Group.objects.create(name="Board")
        self.ann = make_user("ann", groups=["Board"])
        self.bob = make_user("bob")
        self.row, self.secret = ApiKey.objects.issue(self.ann, "test")
        self.open = make_document("leave.md", title="Leave guide", everyone=True, folder="hr")
        self.closed = make_document(
            "minutes.md",
            ("The board met and employees may carry over nine days of leave in secret.",),
            groups=[self.board],
        )

    def key(self, user):
        return {"Authorization": f"Bearer {ApiKey.objects.issue(user, 'test')[1]}"}

    def post(self, body, headers=(), user=None, secret=None, client=None):
        key = self.key(user) if user else {"Authorization": f"Bearer {secret or self.secret}"}
        text = body if isinstance(body, str | bytes) else json.dumps(body)
        return (client or Client()).post(
            "/mcp", text, content_type="application/json", headers=dict(headers) | key
        )

    def result(self, message, **more):
        """The result of a request."""
        body, headers = message
        answer = self.post(body, headers | {"Accept": "application/json"}, **more)
        self.assertEqual(answer.status_code, 200, answer.content)
        told = answer.json()
        self.assertEqual((told["jsonrpc"], told["id"]), ("2.0", body["id"]))
        return told["result"]

    def error(self, message, status, **more):
        body, headers = message
        answer = self.post(body, headers, **more)
        self.assertEqual(answer.status_code, status, answer.content)
        return answer.json()["error"]

    def call(self, tool, message=new_message, user=None, **arguments):
        """The structured result of a tool; the text of one that failed."""
        result = self.result(message("tools/call", name=tool, arguments=arguments), user=user)
        (content,) = result["content"]
        if result.get("isError"):
            return content["text"]
        self.assertEqual(json.loads(content["text"]), result["structuredContent"])
        return result["structuredContent"]


class Lifecycle(McpTestCase):
    def test_the_handshake_selects_the_clients_revision_or_the_newest_supported_one(self):
        for wanted, settled in [
            ("2025-11-25", "2025-11-25"),
            ("2025-06-18", "2025-06-18"),
            ("1999-01-01", "2025-11-25"),
        ]:
            body, headers = old_message("initialize", protocolVersion=wanted, capabilities={})
            headers.pop("MCP-Protocol-Version")
            result = self.result((body, headers))
            self.assertEqual(result["protocolVersion"], settled)
            self.assertEqual(result["capabilities"], {"tools": {}, "resources": {}})
            self.assertEqual(set(result["serverInfo"]), {"name", "title", "version"})
        self.assertEqual(self.result(old_message("ping")), {})
        notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        answer = self.post(notification, old_message("")[1])
        self.assertEqual((answer.status_code, answer.content), (202, b""))

    def test_the_current_revision_discovers_without_a_handshake(self):
        result = self.result(new_message("server/discover"))
        self.assertEqual(result["supportedVersions"], [mcp.CURRENT])
        self.assertEqual(result["resultType"], "complete")
        self.assertEqual((result["ttlMs"], result["cacheScope"]), (mcp.TOOLS_TTL, "private"))
        self.assertEqual(result["_meta"][mcp.SERVER_KEY]["name"], "chatsite")

    def test_methods_of_another_revision_are_not_found(self):
        for method in ("initialize", "ping", "prompts/list", "subscriptions/listen", "nonsense"):
            self.assertEqual(self.error(new_message(method), 404)["code"], mcp.METHOD_NOT_FOUND)
        for method in ("server/discover", "prompts/list", "nonsense"):
            self.assertEqual(self.error(old_message(method), 200)["code"], mcp.METHOD_NOT_FOUND)

    def test_headers_must_match_the_body(self):
        body, headers = new_message("tools/call", name="search", arguments={"query": "leave"})
        for name, value in [
            ("MCP-Protocol-Version", "v999"),
            ("Mcp-Method", "tools/list"),
            ("Mcp-Method", ""),
            ("Mcp-Name", "fetch"),
            ("Mcp-Name", "=?base64?!?="),
        ]:
            wrong = self.error((body, headers | {name: value}), 400)
            self.assertEqual(wrong["code"], mcp.HEADER_MISMATCH, (name, value))
        encoded = headers | {"Mcp-Name": "=?base64?c2VhcmNo?="}
        self.assertEqual(self.post(body, encoded).status_code, 200)

    def test_requests_of_the_current_revision_must_name_version_and_capabilities(self):
        body, headers = new_message("tools/list")
        for missing in (mcp.VERSION_KEY, mcp.CAPABILITIES_KEY):
            meta = {name: value for name, value in ENVELOPE.items() if name != missing}
            wrong = self.error((body | {"params": {"_meta": meta}}, headers), 400)
            self.assertEqual(wrong["code"], mcp.INVALID_PARAMS)
        wrong = self.error((body | {"params": {}}, headers), 400)
        self.assertEqual(wrong["code"], mcp.INVALID_PARAMS)
        meta = ENVELOPE | {mcp.VERSION_KEY: "v999"}
        wrong = self.error(
            (body | {"params": {"_meta": meta}}, headers | {"MCP-Protocol-Version": "v999"}), 400
        )
        self.assertEqual(wrong["code"], mcp.UNSUPPORTED_VERSION)
        self.assertEqual(wrong["data"], {"supported": [mcp.CURRENT], "requested": "v999"})

    def test_an_invalid_message_is_refused_with_an_explanation(self):
        body, headers = old_message("ping")
        for wrong in (b"{", b"[]", b"1", [body], body | {"jsonrpc": "1.0"}, body | {"id": None},
                      body | {"id": True}, body | {"method": 7}, "[" * 100_000):  # fmt: skip
            answer = self.post(wrong if isinstance(wrong, str | bytes) else json.dumps(wrong), headers)
            self.assertEqual(answer.status_code, 400, wrong)
            self.assertIn(answer.json()["error"]["code"], (mcp.PARSE_ERROR, mcp.INVALID_REQUEST))
        self.assertEqual(self.error((body | {"params": []}, headers), 200)["code"], mcp.INVALID_PARAMS)
        self.assertEqual(Client().get("/mcp", headers=self.key(self.ann)).status_code, 405)
        self.assertEqual(Client().get("/mcp", headers=self.key(self.ann)).headers["Allow"], "POST")


class Tools(McpTestCase):
    def test_all_tools_are_listed_with_schemas_in_a_fixed_order(self):
        for message in BOTH_REVISIONS:
            result = self.result(message("tools/list"))
            self.assertEqual([tool["name"] for tool in result["tools"]], list(mcp_tools.TOOLS))
            for tool in result["tools"]:
                self.assertEqual(tool["inputSchema"]["type"], "object")
                self.assertEqual(tool["outputSchema"]["type"], "object")

    def test_search_results_can_be_fetched(self):
        for message in BOTH_REVISIONS:
            found = self.call("search", message, query="carry over leave")["results"]
            names = {hit["document_id"] for hit in found}
            self.assertEqual(names, {str(self.open.public_id), str(self.closed.public_id)})
            for hit in found:
                self.assertLessEqual({"id", "title", "url"}, hit.keys())
                self.assertTrue(hit["url"].startswith("http://testserver/content/"), hit["url"])
                read = self.call("fetch", message, id=hit["id"])
                self.assertEqual((read["id"], read["text"]), (hit["id"], hit["text"]))
                self.assertEqual(read["metadata"]["document_id"], hit["document_id"])
                whole = self.call("fetch", message, id=hit["document_id"])
                self.assertIn(hit["text"], whole["text"])

    def test_search_is_narrowed_by_category_and_number(self):
        Document.objects.filter(pk=self.open.pk).update(category="rules")
        found = self.call("search", query="leave", category="rules")["results"]
        self.assertEqual([hit["document_id"] for hit in found], [str(self.open.public_id)])
        self.assertEqual(len(self.call("search", query="leave", limit=1)["results"]), 1)
        self.assertEqual(self.call("search", query="zebra crossings")["results"], [])

    @pytest.mark.slow
    def test_search_and_questions_are_narrowed_by_scope(self):
        for scope, names in [
            ("all", {self.open, self.closed}),
            ("folder:hr", {self.open}),
            (f"document:{self.closed.public_id}", {self.closed}),
            ("own", set()),
            ("category:rules", set()),
            (f"document:{NOWHERE}", set()),
            ("", {self.open, self.closed}),
        ]:
            found = self.call("search", query="carry over leave", scope=scope)["results"]
            self.assertEqual({hit["document_id"] for hit in found}, {str(one.public_id) for one in names})
        asked = self.call("ask", question=QUESTION, scope="folder:hr")
        self.assertEqual({source["title"] for source in asked["sources"]}, {"Leave guide"})
        # A second question has the scope of the first, unless it names another one.
        for scope, title in ((None, "Leave guide"), (f"document:{self.closed.public_id}", "Minutes")):
            again = self.call("ask", question=QUESTION, conversation_id=asked["conversation_id"], scope=scope)
            self.assertEqual({source["title"] for source in again["sources"]}, {title})

    def test_a_scope_gives_no_additional_access(self):
        closed = f"document:{self.closed.public_id}"
        self.assertEqual(self.call("search", user=self.bob, query="nine days", scope=closed)["results"], [])
        asked = self.call("ask", user=self.bob, question="What of nine days?", scope=closed)
        self.assertEqual(asked["sources"], [])
        self.assertNotIn("secret", json.dumps(asked))

    def test_the_parts_of_a_long_document_join_to_the_whole(self):
        passages = [("", None, f"Part {number // 40}", f"{number} " + "word " * 200) for number in range(150)]
        long = make_document("long.md", passages, everyone=True)
        wanted, texts = str(long.public_id), []
        while wanted:
            part = self.call("fetch", id=wanted)
            self.assertLess(len(part["text"]), 110_000)
            texts.append(part["text"])
            wanted = part["metadata"].get("next")
        self.assertGreater(len(texts), 1)
        whole = "\n\n".join(texts)
        numbers = [int(line.partition(" ")[0]) for line in whole.split("\n\n") if line[:1].isdigit()]
        self.assertEqual(numbers, list(range(150)))

    def test_sources_are_listed_in_pages_and_by_words(self):
        for number in range(5):
            make_document(f"page-{number}.md", everyone=True)
        names, cursor = [], None
        while cursor != "":
            page = self.call("list_sources", limit=3, **({"cursor": cursor} if cursor else {}))
            names += [entry["name"] for entry in page["documents"]]
            cursor = page.get("next_cursor", "")
        expected = [f"page-{number}.md" for number in reversed(range(5))] + ["minutes.md", "leave.md"]
        self.assertEqual(names, expected)
        self.assertEqual([e["name"] for e in self.call("list_sources", query="hr guide")["documents"]],
                         ["leave.md"])  # fmt: skip

    def test_an_unknown_cursor_is_refused(self):
        for message in BOTH_REVISIONS:
            result = self.result(message("tools/call", name="list_sources", arguments={"cursor": "x"}))
            self.assertTrue(result["isError"])
            status = 200 if message is old_message else 400
            self.assertEqual(self.error(message("resources/list", cursor="x"), status)["code"], -32602)

    def test_an_answer_has_sources_and_is_stored_in_the_history(self):
        for message in BOTH_REVISIONS:
            told = self.call("ask", message, user=self.bob, question=QUESTION)
            self.assertIn("five days", told["answer"])
            (source,) = told["sources"]
            self.assertTrue(source["cited"])
            self.assertIn(f"[{source['label']}]", told["answer"])
            self.assertEqual(self.call("fetch", id=source["id"])["text"], source["text"])
            conversation = Conversation.objects.get(pk=told["conversation_id"])
            self.assertEqual((conversation.owner, conversation.listed), (self.bob, True))
        again = self.call("ask", user=self.bob, question="Until when?", conversation_id=str(conversation.pk))
        self.assertEqual(again["conversation_id"], str(conversation.pk))
        self.assertEqual(conversation.messages.count(), 4)

    def test_an_answer_of_quotations_has_a_grade(self):
        self.assertEqual(mcp_tools.GRADES, GRADES)
        for question, grade in ((QUESTION, Grade.GIVEN), ("What do zebras eat?", Grade.NONE)):
            self.assertEqual(self.call("ask", user=self.bob, question=question).get("grade"), grade, question)

    def test_the_answer_of_a_language_model_has_no_grade(self):
        with use_model(ScriptedModel([f"Five days [{self.open.name}]."])):
            self.assertNotIn("grade", self.call("ask", user=self.bob, question=QUESTION))

    def test_an_answer_says_of_each_statement_whether_its_sources_support_it(self):
        statements = [f"At most five days may be carried over [{self.open.name}].",
                      f"At most seventy days may be carried over [{self.open.name}].",
                      "The office is closed on Sundays."]  # fmt: skip
        with use_model(ScriptedModel([" ".join(statements)])):
            told = self.call("ask", user=self.bob, question=QUESTION)
        found = [
            (told["answer"][each["start"] : each["end"]], each["verdict"]) for each in told["verification"]
        ]
        self.assertEqual([verdict for _, verdict in found], ["supported", "not_found", "uncited"])
        for (text, _), statement in zip(found, statements, strict=True):
            self.assertTrue(text.startswith(statement.partition(" [")[0][:-1]), text)
        self.assertEqual(len(told["verification"][0]["citations"]), 1)
        self.assertIn(f"[{told['verification'][0]['citations'][0]}]", told["answer"])

    def test_invalid_arguments_are_reported_to_the_model(self):
        for tool, arguments, words in [
            ("search", {}, "“query” is missing"),
            ("search", {"query": 7}, "“query” must be text"),
            ("search", {"query": " "}, "“query” must not be empty"),
            ("search", {"query": "x" * 5_000}, "longer than 4,000"),
            ("search", {"query": "x", "limit": 51}, "“limit” must be a whole number"),
            ("search", {"query": "x", "scope": "folder:"}, "“scope” must be “all”"),
            ("search", {"query": "x", "scope": 7}, "“scope” must be text"),
            ("ask", {"question": "x", "scope": "document:1"}, "“scope” must be “all”"),
            ("fetch", {"id": 7}, "“id” must be text"),
            ("list_sources", {"limit": 0}, "“limit” must be a whole number"),
            ("ask", {"question": "x" * 40_000}, "longer than 32,000"),
            ("ask", {"question": "x", "conversation_id": NOWHERE}, "There is no such conversation"),
            ("ask", {"question": "x", "conversation_id": "1"}, "There is no such conversation"),
        ]:
            self.assertIn(words, self.call(tool, **arguments), (tool, arguments))
        unknown = self.error(new_message("tools/call", name="drop", arguments={}), 400)
        self.assertEqual(unknown["code"], mcp.INVALID_PARAMS)
        unknown = self.error(old_message("tools/call", name="drop", arguments={}), 200)
        self.assertEqual(unknown["code"], mcp.INVALID_PARAMS)

    @override_settings(USER_QUESTIONS_PER_MINUTE=1)
    def test_limits_of_questions_apply_to_tools_too(self):
        self.assertIn("five days", self.call("ask", user=self.bob, question=QUESTION)["answer"])
        self.assertIn("Wait a moment", self.call("ask", user=self.bob, question=QUESTION))


class Streams(McpTestCase):
    async def test_an_answer_streams_its_progress_and_ends_with_the_result(self):
        for message in BOTH_REVISIONS:
            params = {"name": "ask", "arguments": {"question": QUESTION}, "_meta": {"progressToken": "t"}}
            body, headers = message("tools/call", **params)
            answer = await self.streamed((body, headers))
            text = b"".join([chunk async for chunk in answer.streaming_content]).decode()
            *steps, last = [
                json.loads(line.removeprefix("data: "))
                for line in text.splitlines()
                if line.startswith("data: ")
            ]
            self.assertEqual(last["id"], body["id"])
            self.assertIn("leave", last["result"]["structuredContent"]["answer"])
            self.assertEqual({step["method"] for step in steps}, {"notifications/progress"})
            self.assertEqual({step["params"]["progressToken"] for step in steps}, {"t"})
            numbers = [step["params"]["progress"] for step in steps]
            self.assertEqual(numbers, sorted(set(numbers)))

    async def test_an_answer_ends_within_two_seconds_when_its_key_is_revoked(self):
        model = HeldModel(words=["Five days.", " The rest is for nobody."])
        message = new_message("tools/call", name="ask", arguments={"question": QUESTION},
                              _meta={"progressToken": "t"})  # fmt: skip
        with use_model(model):
            answer = await self.streamed(message)
            chunks = aiter(answer.streaming_content)
            while "Writing the answer" not in (await anext(chunks)).decode():
                pass
            await in_database(ApiKey.objects.filter(pk=self.row.pk).delete)
            async with asyncio.timeout(2 + MARGIN_SECONDS):
                rest = b"".join([chunk async for chunk in chunks]).decode()
            model.released.set()
        *_, last = [line for line in rest.splitlines() if line.startswith("data: ")]
        told = json.loads(last.removeprefix("data: "))
        self.assertEqual(told["id"], message[0]["id"])
        self.assertTrue(told["result"]["isError"])
        self.assertNotIn("Five days", rest)
        self.assertEqual((await self.posted(message)).status_code, 401)

    async def posted(self, message):
        body, headers = message
        headers = headers | {"Authorization": f"Bearer {self.secret}"}
        return await AsyncClient().post(
            "/mcp", json.dumps(body), content_type="application/json", headers=headers
        )

    async def streamed(self, message):
        answer = await self.posted(message)
        self.assertEqual((answer.status_code, answer.headers["Content-Type"]), (200, EVENT_STREAM))
        return answer


class Resources(McpTestCase):
    def test_documents_are_resources_in_pages(self):
        for message in BOTH_REVISIONS:
            listed = self.result(message("resources/list"))["resources"]
            self.assertEqual([entry["name"] for entry in listed], ["minutes.md", "leave.md"])
            uri = listed[1]["uri"]
            (content,) = self.result(message("resources/read", uri=uri))["contents"]
            self.assertEqual((content["uri"], content["mimeType"]), (uri, "text/plain"))
            self.assertIn("five days", content["text"])
            templates = self.result(message("resources/templates/list"))["resourceTemplates"]
            self.assertEqual({each["name"] for each in templates}, {"document", "passage"})
            hit = self.call("search", message, query="carry over five days", limit=1)["results"][0]
            (content,) = self.result(message("resources/read", uri=f"document://{hit['id']}"))["contents"]
            self.assertEqual(content["text"], hit["text"])

    def test_clients_are_told_not_to_cache_documents(self):
        self.assertEqual(self.result(new_message("resources/list"))["ttlMs"], 0)


@pytest.mark.slow
class NothingOfOthers(McpTestCase):
    """No tool or resource shows anything of a document to a caller who may not read it."""

    def test_documents_of_others_look_like_missing_ones(self):
        passage = self.closed.passages.get()
        closed, nothing = str(self.closed.public_id), NOWHERE
        for message in BOTH_REVISIONS:
            self.assertNotIn(
                "nine days", json.dumps(self.call("search", message, self.bob, query="nine days"))
            )
            asked = self.call("ask", message, self.bob, question="What did the board say of nine days?")
            self.assertNotIn("nine days of", json.dumps(asked))
            for listing in (
                self.call("list_sources", message, self.bob),
                self.call("list_sources", message, self.bob, query="minutes"),
                self.result(message("resources/list"), user=self.bob),
            ):
                self.assertNotIn("minutes", json.dumps(listing))
            for suffix in ("", f"/{passage.pk}", "/from/0"):
                refused = self.call("fetch", message, self.bob, id=f"{closed}{suffix}")
                self.assertEqual(refused, self.call("fetch", message, self.bob, id=f"{nothing}{suffix}"))
                status = 200 if message is old_message else 400
                one, other = (
                    self.error(message("resources/read", uri=uri), status, user=self.bob)
                    for uri in (f"document://{closed}{suffix}", f"document://{nothing}{suffix}")
                )
                self.assertEqual(one | {"data": None}, other | {"data": None})
                self.assertEqual(one["data"], {"uri": f"document://{closed}{suffix}"})

    def test_a_passage_is_not_read_by_the_id_of_another_document(self):
        passage = self.closed.passages.get()
        wanted = f"{self.open.public_id}/{passage.pk}"
        for user in (self.ann, self.bob):
            self.assertIn("no such", self.call("fetch", user=user, id=wanted))

    def test_invalid_ids_are_not_found(self):
        own = self.open.public_id
        for wanted in ("x", "../etc", f"{own}/", f"{own}/-1", f"{own}/{10**18}", f"{own}/from/999999999"):
            self.assertIn("no such", self.call("fetch", id=wanted), wanted)
        for uri in ("file:///etc/passwd", "test://nothing", "document://", "document://x"):
            self.assertEqual(self.error(new_message("resources/read", uri=uri), 400)["data"], {"uri": uri})


class Messages(SimpleTestCase):
    def test_a_progress_token_is_text_or_a_number(self):
        for token, kept in (("a", "a"), (7, 7), (None, None), (True, None), ({}, None)):
            call = mcp.Call("tools/call", {"_meta": {"progressToken": token}}, 1, True)
            self.assertEqual(call.progress_token, kept)
