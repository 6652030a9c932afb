"""All described routes with all scopes and callers: no response shows more than rights and scopes allow."""

import json
import logging
import shutil
import tempfile

import pytest
from django.test import Client, TransactionTestCase, override_settings

from chatsite.accounts.api_keys import Scope
from chatsite.accounts.models import ApiKey, WebhookEndpoint
from chatsite.http import api_description
from chatsite.tests.world import World
from history.models import Conversation, Message
from ingestion.models import Document, Passage

# Words that occur only in the owner's things.
CONVERSATION, DOCUMENT, WEBHOOK = "zqconversation", "zqdocument", "zqwebhook"
# What a key with one scope may show to the owner.
SHOWN = {
    Scope.CHAT: {CONVERSATION, DOCUMENT},
    Scope.SEARCH: {DOCUMENT},
    Scope.DOCUMENTS_READ: {DOCUMENT},
    Scope.DOCUMENTS_WRITE: {DOCUMENT},
    Scope.WEBHOOKS: {WEBHOOK},
}
BODIES = {
    "/api/search": {"query": DOCUMENT},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "When did they meet?"}]},
    "/mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
}


@pytest.mark.slow
class ScopesAndRoutesTests(TransactionTestCase):
    def setUp(self):
        files = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, files)
        overridden = override_settings(MEDIA_ROOT=files)
        overridden.enable()
        self.addCleanup(overridden.disable)
        self.world = World()
        self.arguments = self.world.arguments
        self.restore()
        logging.disable(logging.WARNING)
        self.addCleanup(logging.disable, logging.NOTSET)

    def restore(self):
        self.world.restore()
        Document.objects.update(
            title=DOCUMENT, category=DOCUMENT, source_url=f"https://{DOCUMENT}.example.org/"
        )
        Passage.objects.update(content=f"The board met for {DOCUMENT}.")
        Conversation.objects.update(title=CONVERSATION)
        Message.objects.update(content=CONVERSATION)
        WebhookEndpoint.objects.update(name=WEBHOOK, url=f"https://{WEBHOOK}.example.org/")

    def asked(self, path, method, key):
        """The status of a response, and the owner's words that it contains."""
        if method in ("post", "put", "patch"):
            body = {"data": json.dumps(BODIES.get(path, {})), "content_type": "application/json"}
        else:
            body = {}
        client = Client(raise_request_exception=False)
        answer = getattr(client, method)(
            path.format(**self.arguments), headers={"Authorization": f"Bearer {key}"}, **body
        )
        if answer.streaming:
            text = "" if answer.is_async else b"".join(answer.streaming_content).decode("utf-8", "replace")
        else:
            text = answer.content.decode("utf-8", "replace")
        if method != "get" and answer.status_code < 400:
            self.restore()
        words = {word for word in (CONVERSATION, DOCUMENT, WEBHOOK) if word in text}
        return answer.status_code, words - {word for word in words if word in str(body)}

    def test_no_answer_shows_what_rights_and_scopes_do_not_allow(self):
        operations = [
            (path, method)
            for path, item in api_description.document()["paths"].items()
            for method in item
            if method in ("get", "post", "put", "patch", "delete")
        ]
        owner = self.world.people["owner"]
        keys = {scope: ApiKey.objects.issue(owner, scope, scopes=[scope])[1] for scope in Scope}
        keys |= {"none": ApiKey.objects.issue(owner, "none", scopes=[])[1]}
        wrong, seen = [], {scope: set() for scope in Scope}
        for path, method in operations:
            for scope, key in keys.items():
                status, words = self.asked(path, method, key)
                if more := words - SHOWN.get(scope, set()):
                    wrong.append(f"{method} {path} with {scope}: {status} shows {more}")
                if scope in seen:
                    seen[scope] |= words
            for role in ("stranger", "disabled"):
                status, words = self.asked(path, method, self.world.keys[role])
                if words:
                    wrong.append(f"{method} {path} as {role}: {status} shows {words}")
            status, words = self.asked(path, method, self.world.keys["member"])
            if words - {DOCUMENT}:
                wrong.append(f"{method} {path} as member: {status} shows {words}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))
        # The words appear where they are allowed, so the test can see them. (Nothing is indexed for search.)
        for scope in (Scope.CHAT, Scope.DOCUMENTS_READ, Scope.WEBHOOKS):
            self.assertTrue(seen[scope], scope)
