"""Errors of the REST API in a pseudo-language: each message is translated."""

import re

import pytest
from asgiref.sync import AsyncSingleThreadContext
from django.core.cache import cache
from django.test import TestCase
from drf_spectacular.generators import SchemaGenerator

from chat.tests.conversations import answered
from chatsite.accounts.api_keys import Scope
from chatsite.accounts.models import ApiKey
from chatsite.accounts.principal import Principal
from chatsite.tests.http.test_schema import filled, operations
from chatsite.tests.pseudo_language import PSEUDO, offering_pseudo
from history import projects
from ingestion.tests.factories import make_document, make_user

WRONG = (None, 7, "", "qx", "\0", "x" * 40_000, [], [7], ["qx"], [{}])
TREES = {"messages": ({"role": "qx"}, {"role": "user", "content": 7}, {"role": "user", "content": "x"})}
IDS = re.compile(r"\{(\w+)\}")
NAMES = re.compile(r"“[^”]*”|\{\w*\}")


def left_out(words):
    """The untranslated text of an error: outside the brackets, and not a quoted name."""
    depth, outside = 0, ""
    for piece in re.split("([⟦⟧])", NAMES.sub("", words)):
        depth += {"⟦": 1, "⟧": -1}.get(piece, 0)
        outside += piece if not depth and piece not in "⟦⟧" else ""
    return outside if re.search("[A-Za-z]{3}", outside) else ""


def words_of(body):
    """The messages of an error, as problem details and in the form of the Chat UI."""
    if isinstance(body, list):
        for each in body:
            yield from words_of(each)
    elif isinstance(body, dict):
        if isinstance(body.get("error"), dict):
            yield body["error"]["message"]
        if "title" in body and isinstance(body.get("detail"), str):
            yield body["detail"]
            yield from (each["detail"] for each in body.get("errors", ()))
        yield from (words for each in body.get("results", ()) for words in words_of(each["problem"]))


@pytest.mark.slow
class ApiLanguageTests(TestCase):
    maxDiff = None

    def setUp(self):
        cache.clear()
        self.user = make_user("qxann")
        self.document = make_document("qxguide.md", title="qx", owner=self.user)
        foreign = make_document("qxother.md", owner=make_user("qxbob"), everyone=True)
        conversation, answer = answered(self.user, self.document, question="qx?", title="qx")
        project = projects.create(Principal(self.user.pk, "command"), "qx")
        self.ids = {"conversation_id": conversation.pk, "message_id": answer.pk, "project_id": project.pk}
        self.ids |= {"document_id": foreign.public_id, "public_id": self.document.public_id}
        _, self.key = ApiKey.objects.issue(self.user, "qx", scopes=Scope.values)
        self.enterContext(AsyncSingleThreadContext())  # one thread for all requests
        self.enterContext(offering_pseudo())
        self.seen, self.found = 0, {}

    def look(self, method, path, key=None, **request):
        headers = {"accept-language": PSEUDO, "authorization": f"Bearer {key or self.key}"}
        response = getattr(self.client, method)(path, headers=headers, **request)
        if response.status_code < 400 and "batch" not in path:
            return
        for words in words_of(response.json()):
            self.seen += 1
            if outside := left_out(str(words)):
                self.found.setdefault(outside, f"{method} {path}: {words}")

    def addresses(self, path):
        """An address with ids of rows that the caller may see, and one with unknown ids."""
        yield IDS.sub(lambda match: str(self.ids.get(match[1], "qx")), path)
        if IDS.search(path):
            yield filled(path)

    def bodies(self, schema, components):
        """Bodies of a wrong type, and bodies with a wrong value of one member."""
        yield from ("[]", "null", "7", "{", "{}", '{"qx": 1}')
        name = schema.get("$ref", "").rpartition("/")[2]
        for member in components.get(name, schema).get("properties", {}):
            for value in (*WRONG, *TREES.get(member, ())):
                yield {member: value}

    def test_requests_that_are_refused(self):
        schema = SchemaGenerator().get_schema(public=True)
        for method, path, operation in sorted(operations(schema), key=lambda each: each[0] == "delete"):
            if "/test" in path:
                continue
            content = operation.get("requestBody", {}).get("content", {})
            for address in self.addresses(path):
                self.look(method, address)
                self.look(method, address, key="qx")
                for parameter in operation.get("parameters", ()):
                    if parameter["in"] == "query":
                        for value in ("", "qx", "9" * 30):
                            self.look(method, address, query_params={parameter["name"]: value})
                self.look(method, address, query_params={"qx": "1"})
                for kind, said in content.items():
                    if kind != "application/json":
                        self.look(method, address, data=b"qx", content_type=kind)
                        continue
                    if address == filled(path) != path:
                        continue
                    for body in self.bodies(said["schema"], schema["components"]["schemas"]):
                        self.look(method, address, data=body, content_type=kind)
        self.assertEqual("\n".join(sorted(self.found.values())), "")
        self.assertGreater(self.seen, 500)

    def test_conditions_and_scopes(self):
        document = f"/api/documents/{self.document.public_id}"
        for name in ("If-Match", "If-None-Match"):
            for value in ("qx", '"qx"', "*"):
                self.look("patch", document, data={"category": "qx"}, content_type="application/json",
                          **{f"HTTP_{name.upper().replace('-', '_')}": value})  # fmt: skip
        _, key = ApiKey.objects.issue(self.user, "qx", scopes=[Scope.CHAT])
        for path in ("/api/documents", document, "/api/webhooks"):
            self.look("get", path, key=key)
        items = [
            {"action": "put", "id": "qx"}, {"action": "put", "id": "qx", "base64": "qx"},
            {"action": "delete", "id": "qx", "text": "qx"}, {"action": "put", "id": "a/b", "text": "qx"},
            {"action": "put", "id": "qx.md", "text": ""}, {"action": "qx"}, 7,
            {"action": "put", "id": "qx.xyz", "text": "qx", "users": ["qxnobody"]},
            {"action": "put", "id": "qx.md", "text": "qx", "folder": "qx/" * 300},
        ]  # fmt: skip
        self.look("post", "/api/documents/batch", data={"items": items}, content_type="application/json")
        self.assertEqual("\n".join(sorted(self.found.values())), "")
        self.assertGreater(self.seen, 10)
