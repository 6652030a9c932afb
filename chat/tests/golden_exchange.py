"""Golden exchanges: the examples of the published specifications, compared with the site's answers.

`chat/tests/golden/*.json` has the examples of one specification each: a request, an answer, chunks, errors.
An answer matches its example if it has the same members in the same nesting, with values of the same types.
"""

import json
from pathlib import Path

from django.test import AsyncClient, TransactionTestCase, override_settings

from chat.llm import use_model
from chat.tests.scripted_model import ScriptedModel
from chatsite.accounts.models import ApiKey
from ingestion.tests.factories import make_document, make_user

FOLDER = Path(__file__).parent / "golden"
FILE = "Northwind_Standard_Benefits_Details.pdf"
PASSAGES = (
    (f"page={91}", 91, "", "Tips for understanding the Northwind Health Plus plan and the standard plan."),
    (f"page={17}", 17, "", "What is included in the Northwind Health standard plan is listed here."),
)
WORDS = ("The", " plan", f" [{FILE}#page=91].")
# Verification adds that “The plan” is supported: the passage has both words.
VERIFIED = {"start": 0, "end": 8, "citations": [f"{FILE}#page=91"], "verdict": "supported"}
QUESTIONS = ("What types of prescription drugs are covered?", "Which services cost less?")

# Members that docs/protocols.md adds to the specifications.
BEYOND = {"score", "reranker_score", "model", "temperature", "prompt_template", "sessionState", "agentName"}
BEYOND |= {"citations", "output_text", "verification"}
BEYOND |= {
    "use_semantic_ranker",
    "retrieval_mode",
    "top",
    "filter",
    "minimum_search_score",
    "also_searched_for",
}
# Values that are allowed where an example shows null, and lists and objects that only Azure fills.
FOR_NULL = {"session_state": str, "sessionState": str, "category": str, "props": dict, "error": dict}
AZURE_ONLY = {"content_filter_results", "prompt_filter_results"}


def golden(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


def differences(example, actual, path="$"):
    """The differences from the example, as sentences."""
    name = path.rpartition(".")[2]
    if name in AZURE_ONLY and not actual:
        return []
    if example is None:
        fits = actual is None or isinstance(actual, FOR_NULL.get(name, type(None)))
        return [] if fits else [f"{path}: {actual!r} instead of null"]
    if type(example) is not type(actual):
        return [f"{path}: {actual!r} is no {type(example).__name__}"]
    if isinstance(example, dict):
        return _members(example, actual, path)
    return _items(example, actual, path) if isinstance(example, list) else []


def _members(example, actual, path):
    found = [f"{path}.{name} is missing" for name in example if name not in actual]
    found += [
        f"{path}.{name} is not in the document"
        for name in actual
        if name not in example and name not in BEYOND
    ]
    for name in example:
        if name in actual:
            found += differences(example[name], actual[name], f"{path}.{name}")
    return found


def _items(example, actual, path):
    if not example:
        return []
    if not actual:
        return [f"{path} is empty"]
    if isinstance(example[0], dict) and "title" in example[0] and "description" in example[0]:
        titles = [step["title"] for step in example]
        if titles != [step["title"] for step in actual if step["title"] in titles]:
            return [f"{path}: the steps are {[step['title'] for step in actual]}"]
        pairs = [(one, step) for one in example for step in actual if step["title"] == one["title"]]
    else:
        pairs = [(example[0], item) for item in actual]
    return [line for one, item in pairs for line in differences(one, item, f"{path}[]")]


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
class GoldenTestCase(TransactionTestCase):
    """A caller with a key, one readable document, and a scripted model."""

    def setUp(self):
        self.user = make_user("asker")
        self.key, self.secret = ApiKey.objects.issue(self.user, "test")
        make_document(FILE, PASSAGES, everyone=True)

    async def post(self, path, body, *, model=None, content_type="application/json", **headers):
        headers = {"Authorization": f"Bearer {self.secret}"} | headers
        data = body if isinstance(body, bytes | str) else json.dumps(body)
        model = model or ScriptedModel(words=WORDS, suggestions=QUESTIONS)
        with use_model(model):
            response = await AsyncClient().post(path, data, content_type=content_type, headers=headers)
            if response.streaming:
                response.body = [chunk async for chunk in response.streaming_content]
        return response

    async def lines(self, path, body, media_type, **options):
        """The JSON objects of a stream of lines."""
        response = await self.post(path, body, **options)
        self.assertEqual((response.status_code, response.headers["Content-Type"]), (200, media_type))
        self.assertTrue(all(part.endswith(b"\n") for part in response.body))
        return [json.loads(line) for line in b"".join(response.body).splitlines()]

    async def events(self, path, body, *, alone=True, **options):
        """The data of a stream of server-sent events; with `alone`, each event must be a separate chunk."""
        response = await self.post(path, body, **options)
        self.assertEqual((response.status_code, response.headers["Content-Type"]), (200, "text/event-stream"))
        told = [part.decode() for part in response.body]
        if not alone:
            told = [f"{event}\n\n" for event in "".join(told).split("\n\n")[:-1]]
        self.assertTrue(all(part.startswith("data: ") and part.endswith("\n\n") for part in told))
        self.assertTrue(all(part.count("\n") == 2 for part in told))
        return [part[6:-2] for part in told]

    def like(self, example, actual):
        self.assertEqual(differences(example, actual), [])
