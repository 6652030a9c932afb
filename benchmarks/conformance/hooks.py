"""Hooks for Schemathesis: rules of the API that JSON Schema cannot express, and a check of streams."""

import itertools
import json
import os
import re
import time

import jsonschema_rs
import schemathesis
from schemathesis import GenerationMode

LINES = ("application/json-lines", "application/jsonl")
MAX_IMAGES = 8  # maximum number of images in one question
IMAGES = ("image_url", "input_image")  # types of message parts that are images
QUESTION = {"role": "user", "content": "How many days of leave may I carry over?"}
DIMENSIONS = 256  # dimensions of the built-in embedding model
KEY = "Idempotency-Key"
KEY_LENGTH = 200
_numbers = itertools.count(time.time_ns())  # starts with the time, because several runs may use one site
# Ids of existing objects, by the name of the parameter.
KNOWN = json.loads(os.environ.get("CONFORMANCE_IDS") or "{}")
FILE = "# Leave\n\nFive days may be carried over.\n"
SOURCE = "https://wiki.example/leave"  # a valid address, because no generated one is valid
COLLEAGUE = "hr"  # a user of the demo
IS_ID = re.compile("[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")
LATER = "2031-01-01T00:00:00Z"
# Validators of lines by path, method and media type; kept because creating one takes longer than most
# requests.
_validators = {}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Change bodies that the schema allows so that they also follow the rules in the description's prose."""
    key = (case.headers or {}).get(KEY)
    if isinstance(key, str) and 0 < len(key) <= KEY_LENGTH:
        # Schemathesis generates the same key for many bodies, but the site refuses a key that was used with
        # another body (422).
        case.headers[KEY] = f"{key[: KEY_LENGTH - 20]}-{next(_numbers)}"
    if case.meta is None:
        return
    if case.meta.generation.mode is not GenerationMode.POSITIVE:
        _refuse_labels(case)
        return
    # Deleting a known object would make later cases useless, so a DELETE keeps its generated ids. In the
    # stateful phase, links provide ids.
    phase = case.meta.phase.name
    keeps = phase == "stateful" or (case.method == "DELETE" and phase == "fuzzing")
    for name in set() if keeps else (case.path_parameters or {}).keys() & KNOWN.keys():
        number = next(_numbers)
        if number % 2:  # otherwise keep the generated id, which does not exist
            case.path_parameters[name] = KNOWN[name][number // 2 % len(KNOWN[name])]
    if case.operation.path.startswith("/api/documents/"):
        _put_what_can_be_read(case)
    body = case.body
    if not isinstance(body, dict):
        return
    request = body
    if case.media_type == "multipart/form-data":
        if "json" not in body:
            return
        for name in body.keys() - {"json"}:
            del body[name]  # no generated text is an image
        request = body["json"]
    if case.operation.path == "/api/shares" and KNOWN:
        _share_what_there_is(request)
    if isinstance(request, dict):
        if request.get("project_id"):
            request["project_id"] = None  # generated ids do not exist
        if "wrong_sources" in request:
            request["wrong_sources"] = []  # only sources that the answer cites are accepted
        _end_with_question(request)
        _drop_images(request)
        if case.operation.path.startswith("/chat-history/"):
            _save_each_message_once(request)
        if request.get("dimensions") is not None:
            request["dimensions"] = DIMENSIONS


def _refuse_labels(case):
    """Replace labels of a wrong type in forms, which would be valid: a form sends any value as a text."""
    form = case.body if case.media_type == "multipart/form-data" else None
    if isinstance(form, dict) and not isinstance(form.get("labels", []), list):
        form["labels"] = ["x" * 51]


def _put_what_can_be_read(case):
    """Use a text file, and existing readers, because generated names do not exist."""
    form = case.media_type == "multipart/form-data"
    if case.method == "PUT" and not form:
        case.body, case.media_type = FILE, "text/markdown"  # otherwise the body could be sent as a form
    elif case.method == "PUT":
        case.body = (case.body if isinstance(case.body, dict) else {}) | {"file": FILE}
    if case.method == "PUT" and IS_ID.fullmatch(case.path_parameters["document_id"]):
        # A link from a list inserts the id of a document instead of a name that the caller chose.
        case.path_parameters["document_id"] = f"leave-{next(_numbers)}"
    wish = case.query if case.method == "PUT" and not form else case.body
    if not isinstance(wish, dict):
        return
    for name, there_is in (("users", [COLLEAGUE]), ("groups", []), ("source_url", SOURCE)):
        if name in wish:
            wish[name] = there_is
    if "name" in wish:
        wish["name"] = f"leave-{next(_numbers)}.md"


def _share_what_there_is(request):
    """Share a conversation of the caller with everyone, because generated names do not exist."""
    request |= {"conversation_id": KNOWN["conversation_id"][0], "everyone": True, "groups": [], "people": []}
    request.pop("answer_id", None)
    if request.get("expires_at"):
        request["expires_at"] = LATER


def _save_each_message_once(request):
    """Remove repeated messages: a request may name each message only once."""
    messages = request.get("messages")
    if isinstance(messages, list):
        named = {each.get("messageId") or each.get("id") or id(each): each for each in messages}
        request["messages"] = list(named.values())


def _end_with_question(request):
    """End with a question of the user; with `previous_response_id`, remove messages of others."""
    for member in ("messages", "input"):
        items = request.get(member)
        if not isinstance(items, list) or not items or not isinstance(items[-1], dict):
            continue
        if request.get("previous_response_id"):
            items[:] = [item for item in items if item.get("role") == "user"]
        if not items or items[-1].get("role") != "user":
            items.append(dict(QUESTION))


def _drop_images(request):
    """Remove the images that exceed the limit for all messages of a question together."""
    left = MAX_IMAGES
    for member in ("messages", "input"):
        items = request.get(member)
        for item in items if isinstance(items, list) else ():
            parts = item.get("content") if isinstance(item, dict) else None
            for part in list(parts) if isinstance(parts, list) else ():
                if isinstance(part, dict) and part.get("type") in IMAGES:
                    left -= 1
                    if left < 0:
                        parts.remove(part)


@schemathesis.deserializer(*LINES)
def first_line(context, response):
    """Show the built-in check only the first line of a stream; `every_line_conforms` checks all lines."""
    return json.loads(response.content.splitlines()[0])


@schemathesis.check
def every_line_conforms(ctx, response, case):
    """Check that each line of a stream is JSON of the described form."""
    media_type = response.headers.get("content-type", [""])[0].partition(";")[0]
    if media_type not in LINES or response.status_code != 200:
        return
    operation = case.operation
    place = (operation.path, operation.method.lower(), media_type)
    validator = _validators.get(place) or _validators.setdefault(
        place, _line_validator(operation.schema.raw_schema, *place)
    )
    for line in response.content.splitlines():
        for error in validator.iter_errors(json.loads(line)):
            raise AssertionError(f"{error}\nin the line {line.decode()[:500]}")


def _line_validator(document, path, method, media_type):
    schema = document["paths"][path][method]["responses"]["200"]["content"][media_type]["schema"]
    return jsonschema_rs.validator_for({**schema, "components": document["components"]})
