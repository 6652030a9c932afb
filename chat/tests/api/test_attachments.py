"""Images that come with a question as multipart/form-data."""

import base64
import json

from django.test import AsyncClient, SimpleTestCase, override_settings

from chat.api.parsers import (
    MAX_PARTS,
    parts,
)
from chat.attachments import (
    MAX_IMAGE_BYTES,
    MAX_IMAGES,
)
from chat.llm import Prompt, use_model
from chat.llm.chat_model import messages
from chat.requests import ImageInput
from chat.tests.golden_exchange import WORDS, GoldenTestCase
from chat.tests.scripted_model import ScriptedModel
from chatsite.db.threads import in_database
from history.models import Message

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABAQAAAAA3bvkkAAAACklEQVR4nGMAAQAABQABDQ0tuhsAAAAASUVORK5CYII="
)
IMAGES = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0 and so on",
    "image/gif": b"GIF89a and so on",
    "image/webp": b"RIFF\x00\x00\x00\x00WEBPVP8 ",
}
ASKED = {"messages": [{"role": "user", "content": "What is included in the plan?"}]}
TYPE = "multipart/form-data; boundary=---Part-1"
FIRST = "messages[0].files[0]"


def part(name, data, more=""):
    return f"\r\nContent-Disposition: form-data; name={name}{more}\r\n\r\n".encode() + data + b"\r\n"


def form(body=ASKED, files=()):
    """A multipart body in the form of the published client, but without file names."""
    told = [part("json", body if isinstance(body, bytes) else json.dumps(body).encode())]
    told += [part(f'"{name}"', data) for name, data in files]
    mark = b"-----Part-1"
    return mark + mark.join(told) + mark + b"--\r\n\r\n"


class MultipartTests(SimpleTestCase):
    def test_parts_keep_their_bytes(self):
        data = bytes(range(256)) + b"\r\n\r\n--\r\n"
        found = list(parts(form(files=[(FIRST, data)]), TYPE))
        self.assertEqual([item.name for item in found], ["json", FIRST])
        self.assertEqual(found[1].data, data)

    def test_forms_of_curl_and_browsers_are_read(self):
        body = (
            b"--b" + part('"json"', b"{}") + b"--b" + part('"x"', b"1", '; filename="a.png"') + b"--b--\r\n"
        )
        found = [(item.name, item.data) for item in parts(body, 'multipart/form-data; boundary="b"')]
        self.assertEqual(found, [("json", b"{}"), ("x", b"1")])

    def test_broken_and_oversized_forms_are_refused(self):
        for body, kind in (
            (b"", TYPE),
            (b"nothing", TYPE),
            (form()[:-10], TYPE),
            (form(), "multipart/form-data"),
            (form(), "multipart/form-data; boundary="),
            (form(), f"multipart/form-data; boundary={'x' * 500}"),
            (b"-----Part-1\r\nno end of the head\r\n-----Part-1--", TYPE),
            (b"-----Part-1" + part("x" * 5_000, b"") + b"-----Part-1--", TYPE),
            (form(files=[("x", b"")] * MAX_PARTS), TYPE),
        ):
            with self.assertRaises(ValueError):
                list(parts(body, kind))


class PromptTests(SimpleTestCase):
    def test_images_are_sent_with_the_question_as_data(self):
        prompt = Prompt("What is this?", (), (), 0.3, images=(ImageInput("image/png", PNG),))
        text, image = messages(prompt)[-1]["content"]
        self.assertEqual((text["type"], text["text"][:13]), ("text", "What is this?"))
        url = image["image_url"]["url"]
        self.assertEqual(url, f"data:image/png;base64,{base64.b64encode(PNG).decode()}")

    def test_without_images_the_content_is_plain_text(self):
        self.assertIsInstance(messages(Prompt("What?", (), (), 0.3))[-1]["content"], str)


class AttachmentTests(GoldenTestCase):
    def setUp(self):
        super().setUp()
        self.enterContext(override_settings(CHAT_MODEL_READS_IMAGES=True))

    async def send(self, body, path="/chat", **options):
        return await self.post(path, body, content_type=TYPE, **options)

    async def refused(self, body, status, *words):
        response = await self.send(body)
        self.assertEqual(response.status_code, status, response.content)
        for word in words:
            self.assertIn(word, response.json()["error"])
        self.assertEqual(await Message.objects.acount(), 0)

    async def test_the_model_gets_the_attached_images_in_order(self):
        files = [(f"messages[0].files[{place}]", data) for place, data in enumerate(IMAGES.values())]
        model = ScriptedModel(words=WORDS)
        response = await self.send(form(files=reversed(files)), model=model)
        self.assertEqual(response.status_code, 200, response.content)
        self.assertEqual(set(response.json()), {"message", "context", "sessionState"})
        seen = [(image.media_type, image.data) for image in model.prompts[0].images]
        self.assertEqual(seen, list(IMAGES.items()))

    async def test_a_form_is_streamed_in_the_ai_chat_protocol(self):
        chunks = await self.send(form(files=[(FIRST, PNG)]), "/chat//stream")
        self.assertEqual(chunks.headers["Content-Type"], "application/jsonl")
        self.assertIn("sessionState", json.loads(chunks.body[0].splitlines()[0]))

    async def test_a_question_with_an_image_is_answered_without_documents_too(self):
        body = {"messages": [{"role": "user", "content": "zxqv?"}]}
        model = ScriptedModel(words=["A dog."])
        answer = await self.send(form(body, [(FIRST, PNG)]), model=model)
        self.assertEqual(answer.json()["message"]["content"], "A dog.")

    async def test_a_follow_up_includes_the_images_of_earlier_messages(self):
        first = (await self.send(form(files=[(FIRST, PNG)]))).json()
        said = [*ASKED["messages"], {"role": "assistant", "content": "x"}, *ASKED["messages"]]
        model = ScriptedModel(words=WORDS)
        body = form({"messages": said, "sessionState": first["sessionState"]}, [(FIRST, PNG)])
        self.assertEqual((await self.send(body, model=model)).status_code, 200)
        self.assertEqual(len(model.prompts[0].images), 1)

    @override_settings(CHAT_MODEL_READS_IMAGES=False)
    async def test_a_text_model_refuses_images_by_name_and_accepts_text(self):
        await self.refused(form(files=[(FIRST, PNG)]), 400, f"“{FIRST}”", "text only")
        self.assertEqual((await self.send(form())).status_code, 200)

    async def test_broken_forms_are_refused(self):
        await self.refused(form()[:-10], 400, "multipart/form-data")
        await self.refused(form(b"{broken"), 400, "“json”")
        await self.refused(form(b"[]"), 400, "“json”")
        await self.refused(form(files=[("json", b"{}")]), 400, "“json”", "twice")
        await self.refused(b"-----Part-1" + part('"x"', b"") + b"-----Part-1--", 400, "“json”")
        await self.refused(form({"messages": 5}), 400, "“messages”")
        await self.refused(form({"messages": [5]}, [(FIRST, PNG)]), 400, "“messages[0]”")

    async def test_other_files_and_unrelated_parts_are_refused_by_name(self):
        await self.refused(form(files=[(FIRST, b"<svg onload=x>")]), 415, f"“{FIRST}”")
        await self.refused(form(files=[(FIRST, b"")]), 415, f"“{FIRST}”")
        await self.refused(form(files=[("avatar", PNG)]), 400, "“avatar”")
        await self.refused(form(files=[("messages[7].files[0]", PNG)]), 400, "“messages[7].files[0]”")

    async def test_too_many_or_too_large_images_are_refused(self):
        many = [(f"messages[0].files[{place}]", PNG) for place in range(MAX_IMAGES + 1)]
        await self.refused(form(files=many), 400, f"{MAX_IMAGES} images")
        in_german = await self.send(form(files=many), **{"Accept-Language": "de"})
        self.assertEqual(in_german.json()["error"], f"Eine Frage kann höchstens {MAX_IMAGES} Bilder haben.")
        large = PNG + bytes(MAX_IMAGE_BYTES)
        await self.refused(form(files=[(FIRST, large)]), 413, f"“{FIRST}”", "5 MB")

    async def test_files_declared_in_the_json_are_ignored(self):
        body = {"messages": [ASKED["messages"][0] | {"files": "x"}]}
        self.assertEqual((await self.send(form(body, [(FIRST, PNG)]))).status_code, 200)

    async def test_the_same_key_with_another_image_is_another_request(self):
        send = {"Idempotency-Key": "k"}
        first = await self.send(form(files=[(FIRST, PNG)]), **send)
        self.assertEqual((await self.send(form(files=[(FIRST, PNG)]), **send)).json(), first.json())
        other = await self.send(form(files=[(FIRST, IMAGES["image/gif"])]), **send)
        self.assertEqual(other.status_code, 422)

    async def test_other_protocols_do_not_accept_forms(self):
        for path in ("/api/minimal/chat", "/v1/chat/completions"):
            self.assertEqual((await self.send(form(), path)).status_code, 415)

    async def test_a_cookie_requires_a_csrf_token(self):
        await in_database(self.user.set_password, "pass")
        await in_database(self.user.save)
        client = AsyncClient(enforce_csrf_checks=True)
        await client.alogin(username="asker", password="pass")
        send = {"path": "/chat", "data": form(files=[(FIRST, PNG)]), "content_type": TYPE}
        self.assertEqual((await client.post(**send)).status_code, 403)
        client.cookies["csrftoken"] = "a" * 32
        with use_model(ScriptedModel(words=WORDS)):
            response = await client.post(**send, headers={"X-CSRFToken": "a" * 32})
        self.assertEqual(response.status_code, 200, response.content)
