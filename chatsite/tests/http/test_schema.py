"""The API description: complete, valid, correct for every URL, and shown without other servers."""

import re
import shutil
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import pytest
import schemathesis
import yaml
from django.test import Client, SimpleTestCase
from django.urls import Resolver404, resolve
from drf_spectacular.drainage import GENERATOR_STATS, reset_generator_stats
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import one_of
from jsonschema_rs import meta, validator_for
from playwright.sync_api import expect

from chat.protocols.openai import openai_chat, openai_completions, responses
from chatsite.http import api_description
from chatsite.tests.chromium import open_page
from chatsite.tests.routes import routes
from chatsite.tests.server import Site, prepared, temporary_folder
from history import message_search

# For everyone, because front ends request it before they show anything.
OPEN = {"chat:auth-setup", "chat:config"}
DESCRIBED = ("chat-api:", "history:")
DESCRIBED_TOO = {
    "ingestion:content",
    "ingestion:page-image",
    "accounts:whoami",
    "accounts:webhooks",
    "accounts:webhook",
    "accounts:webhook-secret",
    "accounts:webhook-test",
    "accounts:webhook-deliveries",
    "accounts:webhook-replay",
    "ingestion:search",
    "ingestion:api-documents",
    "ingestion:api-document",
    "ingestion:api-passages",
    "ingestion:api-page",
    "ingestion:api-versions",
    "ingestion:api-file",
    "ingestion:api-batch",
    *OPEN,
}
VALUES = {
    "conversation_id": str(uuid.UUID(int=1)),
    "message_id": str(uuid.UUID(int=1)),
    "share_id": str(uuid.UUID(int=1)),
    "project_id": str(uuid.UUID(int=1)),
    "webhook_id": str(uuid.UUID(int=1)),
    "delivery_id": str(uuid.UUID(int=1)),
    "run_id": str(uuid.UUID(int=1)),
    "response_id": f"resp_{uuid.UUID(int=1).hex}",
    "public_id": str(uuid.UUID(int=1)),
    "document_id": str(uuid.UUID(int=1)),
    "page": "1",
    "number": "1",
    "sourcefile": "a.pdf",
    "model": "a",
}
METHODS = {"get", "put", "post", "patch", "delete"}
MEMBERS = {
    "tags", "summary", "description", "operationId", "parameters", "requestBody", "responses", "security",
}  # fmt: skip
SECONDS = 10


def operations(document):
    for path, item in document["paths"].items():
        for method in METHODS & item.keys():
            yield method, path, item[method]


def filled(path):
    return re.sub(r"\{(\w+)\}", lambda match: VALUES[match[1]], path)


def references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for part in value.values():
            yield from references(part)
    elif isinstance(value, list):
        for part in value:
            yield from references(part)


def members(value):
    """All objects within a JSON value, including itself."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from members(part)


class Description(SimpleTestCase):
    def test_the_description_is_served_to_everyone_as_openapi_3_1(self):
        answer = Client().get("/api/schema/")
        self.assertEqual(answer.status_code, 200)
        self.assertEqual(answer.json()["openapi"], "3.1.0")

    def test_concurrent_requests_build_the_description_once(self):
        api_description._body.cache_clear()
        built = []

        def build():
            built.append(1)
            time.sleep(0.2)
            return {}

        with patch.object(api_description, "document", build), ThreadPoolExecutor(5) as threads:
            answers = list(threads.map(lambda _: Client().get("/api/schema/").status_code, range(5)))
        api_description._body.cache_clear()
        self.assertEqual(answers, [200] * 5)
        self.assertEqual(len(built), 1)

    def test_every_url_for_programs_is_described_and_nothing_else(self):
        wanted = {name for name, _ in routes() if name.startswith(DESCRIBED) or name in DESCRIBED_TOO}
        found = set()
        for path in api_description.document()["paths"]:
            try:
                found.add(resolve(filled(path)).view_name)
            except Resolver404:
                self.fail(f"{path} is described, but there is no such URL")
        self.assertEqual(found, wanted)

    def test_methods_are_those_of_the_views(self):
        for path, item in api_description.document()["paths"].items():
            view = getattr(resolve(filled(path)).func, "cls", None)
            offered = {name for name in METHODS if hasattr(view, name)} if view else {"get"}
            self.assertEqual(METHODS & item.keys(), offered, path)

    def test_a_key_without_the_scope_is_described_wherever_a_caller_must_be_known(self):
        for method, path, operation in operations(api_description.document()):
            if "401" in operation["responses"]:
                self.assertIn("403", operation["responses"], f"{method} {path}")

    def test_requests_are_described_in_every_form_that_is_read(self):
        for method, path, operation in operations(api_description.document()):
            if body := operation.get("requestBody"):
                view = resolve(filled(path)).func.cls
                parsers = getattr(view, "parsers_by_method", {}).get(method.upper(), view.parser_classes)
                self.assertEqual(body["content"].keys(), {parser.media_type for parser in parsers}, path)

    def test_every_address_of_the_ai_chat_protocol_describes_its_streams(self):
        for _, path, operation in operations(api_description.document()):
            if "multipart/form-data" in operation.get("requestBody", {}).get("content", {}):
                told = operation["responses"]["200"]["content"]
                self.assertIn("application/jsonl" if "stream" in path else "application/json", told, path)

    def test_every_reference_resolves_and_every_component_is_used(self):
        document = api_description.document()
        used = set(references(document))
        for reference in used:
            place = document
            for step in reference.removeprefix("#/").split("/"):
                self.assertIn(step, place, reference)
                place = place[step]
        parts = document["components"]
        known = {
            f"#/components/{kind}/{name}"
            for kind in ("schemas", "responses", "parameters")
            for name in parts[kind]
        }
        self.assertEqual(known - used, set())

    def test_every_link_leads_to_an_operation_with_such_parameters(self):
        document = api_description.document()
        by_id = {operation.get("operationId"): operation for _, _, operation in operations(document)}
        linked = 0
        for _, path, operation in operations(document):
            for response in operation["responses"].values():
                for link in response.get("links", {}).values():
                    target = by_id.get(link.get("operationId"))
                    if reference := link.get("operationRef"):
                        *_, there, method = reference.split("/")
                        target = document["paths"][there.replace("~1", "/")][method]
                    self.assertIsNotNone(target, path)
                    named = {parameter.get("name") for parameter in target.get("parameters", [])}
                    self.assertLessEqual(link.get("parameters", {}).keys(), named, path)
                    linked += 1
        self.assertGreater(linked, 50)

    def test_no_component_is_described_twice_under_one_name(self):
        for path in api_description.FOLDER.glob("*.yaml"):
            nodes = [yaml.compose(path.read_text(encoding="utf-8"))]
            for node in nodes:
                if isinstance(node, yaml.MappingNode):
                    names = [key.value for key, _ in node.value]
                    self.assertEqual(len(names), len(set(names)), f"{path.name}{node.start_mark}")
                    nodes += [value for _, value in node.value]

    def test_a_put_of_a_file_says_what_is_refused(self):
        document = api_description.document()
        put = document["paths"]["/api/documents/{document_id}"]["put"]
        self.assertTrue(put["requestBody"]["required"])
        for status in ("422", "507"):
            self.assertEqual(list(put["responses"][status]["content"]), ["application/problem+json"])
        form = document["components"]["schemas"]["UploadedDocumentRequest"]
        self.assertIs(form["additionalProperties"], False)
        [name] = [each["schema"] for each in put["parameters"] if each["name"] == "document_id"]
        for external_id, valid in (("wiki:leave@1", True), (VALUES["public_id"], False), ("a b", False)):
            self.assertEqual(validator_for(name).is_valid(external_id), valid, external_id)

    def test_search_words_are_described_as_they_are_read(self):
        parameters = api_description.document()["paths"]["/chat-history/search"]["get"]["parameters"]
        [words] = [each["schema"] for each in parameters if each["name"] == "q"]
        described = validator_for(words)
        for query in ("leave", "è", "休暇", "!", "a b", "", " ", "\t\x1c\x85\u3000"):
            self.assertEqual(described.is_valid(query), bool(message_search.cleaned(query)), repr(query))

    def test_a_question_of_only_spaces_is_described_as_invalid(self):
        schemas = api_description.document()["components"]["schemas"]
        described = validator_for(schemas["LegacyCompletionRequest"]["properties"]["prompt"])
        for text in ("leave", "休", "\x1e!", " ", "\t\n", "\x1c", "\x1f", "\x85", "\u3000\u2028"):
            self.assertEqual(described.is_valid(text), bool(text.strip()), repr(text))

    def test_requests_to_openai_are_described_with_all_members_that_are_read(self):
        schemas = api_description.document()["components"]["schemas"]
        for name, read in (
            ("CompletionRequest", openai_chat.KNOWN),
            ("LegacyCompletionRequest", openai_completions.KNOWN),
            ("ResponseRequest", responses.KNOWN),
        ):
            self.assertEqual(schemas[name]["properties"].keys(), read.keys(), name)

    def test_an_empty_last_event_is_described_as_it_is_read(self):
        parameters = api_description.document()["paths"]["/chat/runs/{run_id}/events"]["get"]["parameters"]
        [last] = [each["schema"] for each in parameters if each.get("name") == "Last-Event-ID"]
        described = validator_for(last)
        for number, valid in (("", True), ("12", True), ("x", False), ("1 ", False)):
            self.assertEqual(described.is_valid(number), valid, repr(number))

    def test_resources_are_described_without_a_warning_and_under_names_of_their_own(self):
        reset_generator_stats()
        schema = SchemaGenerator().get_schema(public=True)
        self.assertFalse(GENERATOR_STATS, GENERATOR_STATS.emit_summary())
        written = api_description.FOLDER.joinpath("components.yaml").read_text()
        for name in schema["components"]["schemas"]:
            self.assertNotIn(f"\n  {name}:", written)
        self.assertEqual({path.split("/")[1] for path in schema["paths"]}, {"chat-history", "api"})

    def test_operations_have_only_members_of_openapi(self):
        for method, path, operation in operations(api_description.document()):
            self.assertLessEqual(operation.keys(), MEMBERS, f"{method} {path}")

    def test_the_description_of_saving_allows_exactly_what_is_saved(self):
        document = api_description.document()
        message = {"role": "user", "content": "Hello"}
        accepted = {
            "messageId": message | {"messageId": "1", "id": None},
            "id": message | {"id": "1", "createdAt": None, "sources": None, "error": None},
            "an error bubble": {"role": "system"},
        }
        refused = {
            "no name": message,
            "an empty name": message | {"id": "", "messageId": ""},
            "no text": {"role": "user", "id": "1"},
            "sources that are text": message | {"id": "1", "sources": ["x"]},
        }
        reference = {"$ref": "#/components/schemas/SavedMessageRequest", "components": document["components"]}
        allows = validator_for(reference).is_valid
        self.assertEqual(
            {name: allows(value) for name, value in accepted.items()}, dict.fromkeys(accepted, True)
        )
        self.assertEqual(
            {name: allows(value) for name, value in refused.items()}, dict.fromkeys(refused, False)
        )
        change = document["components"]["schemas"]["ConversationChangeRequest"]
        allows = validator_for(change).is_valid
        self.assertEqual([allows({"title": text}) for text in ("Leave", "", " ")], [True, False, False])
        self.assertEqual([allows({"pinned": value}) for value in (True, None, "yes")], [True, False, False])
        self.assertFalse(allows({}))
        stored = set(document["components"]["schemas"]["StoredMessage"]["required"])
        self.assertFalse(stored & {"verification", "fromClient", "agentName"})

    def test_every_schema_is_valid(self):
        for name, part in api_description.document()["components"]["schemas"].items():
            self.assertTrue(meta.is_valid(part), name)

    def test_every_list_says_what_it_contains(self):
        """Generators of clients leave out a schema with a list of unknown items."""
        for part in members(api_description.document()["components"]["schemas"]):
            if part.get("type") == "array" or "array" in part.get("type", ()):
                self.assertTrue({"items", "prefixItems"} & part.keys() or part.get("maxItems") == 0, part)

    def test_every_operation_describes_refusals_and_security(self):
        document = api_description.document()
        self.assertEqual(
            document["security"], [{"key": []}, {"keyHeader": []}, {"token": []}, {"session": []}]
        )
        for method, path, operation in operations(document):
            if operation.get("security") != []:
                self.assertTrue({"401", "503"} <= operation["responses"].keys(), f"{method} {path}")
            self.assertIn(operation["tags"][0], api_description.TAGS)
            self.assertTrue(operation["summary"])


@pytest.fixture
def fast_site():
    """Answers are sent without a pause, because the test waits for hundreds of them."""
    folder = temporary_folder()
    try:
        with Site(prepared(folder), CHATSITE_QUOTING_WORDS_PER_SECOND="100000") as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.server
def test_no_request_made_from_the_description_ends_in_a_server_error(fast_site):
    """Hundreds of valid, odd and invalid requests to the real site, with a person's key."""
    session = fast_site.sign_in("employee")
    page = session.get("/settings/keys/").text
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page).group(1)
    made = session.post("/settings/keys/", {"csrfmiddlewaretoken": token, "name": "schemathesis"}).text
    headers = {"Authorization": f"Bearer {re.search(r'chs_[A-Za-z0-9_-]{40,}', made).group(0)}"}
    described = schemathesis.openapi.from_dict(session.get("/api/schema/").json())
    answered, tried = Counter(), set()
    share = SECONDS / len(list(operations(api_description.document())))

    def probe(operation):
        deadline = time.monotonic() + share
        cases = one_of(*(operation.as_strategy(generation_mode=mode) for mode in schemathesis.GenerationMode))

        @settings(
            max_examples=6,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases)
        def attempt(case):
            if operation.label not in tried or time.monotonic() < deadline:
                tried.add(operation.label)
                answer = case.call(base_url=fast_site.url, headers=headers, timeout=10)
                assert answer.status_code < 500, f"{case.as_curl_command()}\n{answer.text[:500]}"
                answered[operation.label, answer.status_code] += 1

        attempt()

    for result in described.get_all_operations():
        probe(result.ok())
    assert len(tried) == len(list(operations(api_description.document()))), answered
    assert any(status == 200 for _, status in answered), answered


@pytest.mark.browser
@pytest.mark.server
def test_the_description_is_browsed_without_any_other_server(chromium, site):
    with open_page(chromium, site.url) as page:
        page.goto("/api/docs/")
        expect(page.locator(".opblock-summary").first).to_be_visible()
        assert page.locator(".opblock").count() > 25
        expect(page.locator("#api")).to_contain_text("RAG chat")
        page.locator(".opblock-summary-post button").first.click()
        shown = page.locator(".opblock-body table, .opblock-body .opblock-description")
        expect(shown.first).to_be_visible()
