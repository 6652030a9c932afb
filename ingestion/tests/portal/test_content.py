"""Files and page images: who gets them, how they are sent, and that browsers execute nothing in them."""

import asyncio
import hashlib
import logging
import os
import threading
from io import BufferedReader, BytesIO
from pathlib import Path
from unittest import mock
from urllib.parse import quote
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import RequestAborted
from django.core.files import File
from django.core.files.base import ContentFile
from django.test import AsyncClient, Client, TestCase, TransactionTestCase, override_settings
from django.utils import timezone
from PIL import Image

from chatsite.accounts.models import ApiKey, User
from chatsite.http import checked_transfer
from chatsite.logs import CutFilter
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS
from ingestion import documents
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.models import Document
from ingestion.parsing import process
from ingestion.parsing.formats import WORD
from ingestion.portal import content
from ingestion.storage import files
from ingestion.storage.ranged import RangedReader
from ingestion.tests import building
from ingestion.tests.media import MediaMixin

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def body(response):
    return b"".join(response.streaming_content)


@pytest.mark.slow
class ContentTests(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.owner = User.objects.create(username="owner")
        self.stranger = User.objects.create(username="stranger")
        self.client.force_login(self.owner)

    def mine(self, name, data, **more):
        return self.add(name, data, owner=self.owner, audience=Audience(), **more)

    def image(self, document, page=1):
        return f"/content/{document.public_id}/pages/{page}.png"

    def test_a_stored_file_that_was_changed_or_cut_is_not_sent_completely(self):
        document = self.mine("a.txt", b"x" * 300_000)
        address, path = f"/content/{document.public_id}/a.txt", Path(document.file.path)
        client = Client()
        client.force_login(self.owner)

        def received_until_the_end(response):
            pieces = []
            with self.assertRaises(RequestAborted), self.assertLogs(content.logger, "ERROR") as logged:
                pieces.extend(response.streaming_content)
            words = f"The stored file of document {document.pk} is damaged; sending it was aborted."
            self.assertEqual([record.getMessage() for record in logged.records], [words])
            return len(b"".join(pieces))

        path.write_bytes(b"x" * 299_999 + b"y")
        for headers in ({}, {"range": "bytes=0-"}):
            received = received_until_the_end(client.get(address, headers=headers))
            self.assertEqual(received, content.CHUNK_BYTES)
        part = client.get(address, headers={"range": "bytes=299998-"})
        self.assertEqual((part.status_code, body(part)), (206, b"xy"))  # of a part, only the size is compared
        response = client.get(address)
        os.truncate(path, 299_999)
        received_until_the_end(response)
        for headers in ({}, {"range": "bytes=0-9"}):
            with self.assertLogs(content.logger, "ERROR") as logged:
                refused = client.get(address, headers=headers)
            self.assertEqual(refused.status_code, 500)
            self.assertIn("The stored file is damaged.", refused.content.decode())
            self.assertIn(f"document {document.pk} has changed", logged.output[0])

    # Who

    def test_a_reader_gets_the_file_and_the_page(self):
        data = building.pdf(["One."], ["Two."])
        document = self.mine("plan.pdf", data)
        response = self.client.get("/content/plan.pdf")
        self.assertEqual((response.status_code, body(response)), (200, data))
        image = self.client.get(self.image(document, 2))
        self.assertEqual((image.status_code, image["Content-Type"]), (200, "image/png"))
        self.assertEqual(Image.open(BytesIO(image.content)).size, (910, 1287))
        self.assertEqual(self.client.get("/content/plan.pdf/pages/2.png").content, image.content)

    def test_other_people_get_the_same_response_as_for_an_unknown_name(self):
        document = self.mine("plan.pdf", building.pdf(["One."]), folder="board")
        self.client.get(self.image(document))
        self.client.force_login(self.stranger)
        for accept in ({}, BROWSER):
            for path, unknown in (
                ("/content/plan.pdf", "/content/none.pdf"),
                ("/content/board/plan.pdf", "/content/board/none.pdf"),
                ("/content/plan.pdf%23page=1", "/content/none.pdf%23page=1"),
                (self.image(document), f"/content/{uuid4()}/pages/1.png"),
                ("/content/board/plan.pdf/pages/1.png", "/content/board/none.pdf/pages/1.png"),
            ):
                refused, missing = (self.client.get(each, headers=accept) for each in (path, unknown))
                self.assertEqual(refused.status_code, 404, path)
                self.assertEqual(
                    (refused.status_code, refused.content), (missing.status_code, missing.content)
                )
                self.assertNotIn("ETag", refused)

    def test_a_known_etag_reveals_nothing_to_other_people(self):
        document = self.mine("plan.pdf", building.pdf(["One."]))
        etag = self.client.get("/content/plan.pdf")["ETag"]
        self.client.force_login(self.stranger)
        for path in ("/content/plan.pdf", self.image(document)):
            self.assertEqual(self.client.get(path, headers={"if-none-match": etag}).status_code, 404)

    def test_changed_rights_apply_immediately(self):
        document = self.add("a.md", owner=self.owner)
        self.client.force_login(self.stranger)
        etag = self.client.get("/content/a.md")["ETag"]
        set_audience(document, Audience())
        self.assertEqual(self.client.get("/content/a.md", headers={"if-none-match": etag}).status_code, 404)

    def test_a_program_uses_its_key(self):
        self.mine("a.md", "Text.")
        self.client.logout()
        for user, status in ((self.owner, 200), (self.stranger, 404)):
            secret = ApiKey.objects.issue(user, "")[1]
            response = self.client.get("/content/a.md", headers={"authorization": f"Bearer {secret}"})
            self.assertEqual(response.status_code, status)

    def test_a_bad_key_with_a_good_cookie_is_refused(self):
        self.mine("a.md", "Text.")
        response = self.client.get("/content/a.md", headers={"authorization": "Bearer wrong"} | BROWSER)
        self.assertEqual(response.status_code, 401)
        self.assertEqual(set(response.json()), {"error"}, "like the refusals of the chat protocols")

    @override_settings(LOGIN_URL="/accounts/sign-in/")
    def test_without_signing_in_nothing_is_sent(self):
        document = self.mine("a.pdf", building.pdf(["One."]))
        self.client.logout()
        for path in ("/content/a.pdf", "/content/none.pdf", self.image(document)):
            response = self.client.get(path)
            self.assertEqual((response.status_code, response["WWW-Authenticate"]), (401, "Bearer"))
            browser = self.client.get(path, headers=BROWSER)
            self.assertRedirects(
                browser, f"/accounts/sign-in/?next={quote(path)}", fetch_redirect_response=False
            )

    # Names

    def test_unusual_names_resolve_to_their_file(self):
        self.mine("Über uns (2).md", "One.", folder="a b/c")
        for path in (
            "Über uns (2).md",
            "a b/c/Über uns (2).md",
            "Über uns (2).md#leave",
            "Über uns (2).md#a#b",
        ):
            response = self.client.get(f"/content/{quote(path)}")
            self.assertEqual(response.status_code, 200, path)
        disposition = "inline; filename*=utf-8''%C3%9Cber%20uns%20%282%29.md"
        self.assertEqual(response["Content-Disposition"], disposition)

    def test_path_traversal_is_not_found(self):
        self.mine("a.md", "One.")
        for path in ("../a.md", "..%2F..%2Fetc/passwd", "%00", "a.md/../../x", "~" * 300, "%ff%fe"):
            self.assertEqual(self.client.get(f"/content/{path}").status_code, 404, path)

    # How

    def test_ranges_of_a_file_are_sent(self):
        self.mine("a.txt", "0123456789")
        for asked, status, sent, place in (
            ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
            ("bytes=7-", 206, b"789", "bytes 7-9/10"),
            ("bytes=-3", 206, b"789", "bytes 7-9/10"),
            ("bytes=0-99", 206, b"0123456789", "bytes 0-9/10"),
            ("bytes=10-", 416, b"", "bytes */10"),
            ("bytes=5-2", 200, b"0123456789", None),
            ("bytes=0-1,4-5", 200, b"0123456789", None),
            ("lines=1-2", 200, b"0123456789", None),
            ("bytes=-", 200, b"0123456789", None),
        ):
            response = self.client.get("/content/a.txt", headers={"range": asked})
            self.assertEqual((response.status_code, body(response)), (status, sent), asked)
            self.assertEqual(response.get("Content-Range"), place, asked)
            self.assertEqual(response["Content-Length"], str(len(sent)))

    def test_a_range_is_sent_only_if_the_version_is_unchanged(self):
        self.mine("a.txt", "0123456789")
        etag = self.client.get("/content/a.txt")["ETag"]
        for known, status in ((etag, 206), ('"other"', 200)):
            headers = {"range": "bytes=0-1", "if-range": known}
            self.assertEqual(self.client.get("/content/a.txt", headers=headers).status_code, status)

    def test_an_unchanged_file_is_not_sent_again(self):
        document = self.mine("a.txt", "Old.")
        first = self.client.get("/content/a.txt")
        self.assertEqual(first["Cache-Control"], "private, no-cache")
        again = {"headers": {"if-none-match": first["ETag"]}}
        self.assertEqual(self.client.get("/content/a.txt", **again).status_code, 304)
        documents.read_document(document.pk, documents.replace_file(document, ContentFile(b"New.")))
        self.assertEqual(body(self.client.get("/content/a.txt", **again)), b"New.")

    async def test_the_asynchronous_server_streams_the_file(self):
        await sync_to_async(self.mine)("a.txt", "line\n" * 200_000, read=False)
        await Document.objects.aupdate(version=1)
        client = AsyncClient()
        await client.aforce_login(self.owner)
        response = await client.get("/content/a.txt")
        pieces = [len(piece) async for piece in response]
        self.assertEqual((sum(pieces), max(pieces)), (1_000_000, 256 * 1024))

    async def test_a_storage_failure_ends_the_response_early_and_logs_one_line(self):
        await sync_to_async(self.mine)("a.txt", b"x" * 1_000_000)
        client = AsyncClient()
        await client.aforce_login(self.owner)

        def begin(position):
            return BytesIO(b"x" * (600_000 - position))

        broken = File(BufferedReader(RangedReader(begin, 1_000_000), 1_000))
        with mock.patch.object(files.default_storage, "open", return_value=broken):
            response = await client.get("/content/a.txt")
            received = 0
            with (
                self.assertLogs("ingestion.portal.content", "INFO") as logged,
                self.assertRaises(RequestAborted) as ended,
            ):
                async for piece in response:
                    received += len(piece)
        self.assertEqual((response["Content-Length"], received), ("1000000", 2 * 256 * 1024))
        [record] = logged.records
        self.assertEqual(
            (record.getMessage(), record.exc_info),
            ("The storage failed while a file was sent: OSError", None),
        )
        # uvicorn would log it with its traceback.
        cut = logging.LogRecord(
            "uvicorn.error", 40, "", 0, "Exception", (), (RequestAborted, ended.exception, None)
        )
        self.assertFalse(CutFilter().filter(cut))

    def test_browsers_execute_nothing_that_is_served(self):
        script = "<script>alert(1)</script><p>Text.</p>"
        text, unknown = "text/plain; charset=utf-8", "application/octet-stream"
        sent = {
            "a.html": ("attachment", text),
            "a.htm": ("attachment", text),
            "a.md": ("inline", text),
            "a.txt": ("inline", text),
            "a.csv": ("inline", text),
            "a.svg": ("attachment", unknown),
            "a.xhtml": ("attachment", unknown),
            "a.docx": ("attachment", WORD.media_type),
        }
        for name, (disposition, media_type) in sent.items():
            document = self.mine(name, script, read=False)
            Document.objects.filter(pk=document.pk).update(version=1)
            response = self.client.get(f"/content/{name}")
            self.assertEqual(response.status_code, 200, name)
            self.assertEqual(response["X-Content-Type-Options"], "nosniff")
            self.assertIn("sandbox; default-src 'none'", response["Content-Security-Policy"])
            self.assertEqual(response["Content-Type"], media_type, name)
            self.assertTrue(response["Content-Disposition"].startswith(disposition), name)
            self.assertEqual(body(response), script.encode())

    def test_a_scriptable_media_type_is_never_sent_even_if_it_is_stored(self):
        document = self.mine("a.md", "Text.")
        for stored in (
            "text/html",
            "application/xhtml+xml",
            "image/svg+xml",
            "text/xml",
            "multipart/related",
            "",
        ):
            Document.objects.filter(pk=document.pk).update(media_type=stored)
            response = self.client.get("/content/a.md")
            self.assertIn(
                response["Content-Type"].partition(";")[0], {"text/plain", "application/octet-stream"}
            )
            self.assertTrue(response["Content-Disposition"].startswith("attachment"), stored)

    def test_a_browser_that_cached_html_with_its_own_type_fetches_it_again(self):
        document = self.mine("a.html", "<p>Text.</p>")
        known = {"if-none-match": f'"{document.sha256}"'}
        answer = self.client.get("/content/a.html", headers=known)
        self.assertEqual(answer.status_code, 200)
        again = self.client.get("/content/a.html", headers={"if-none-match": answer["ETag"]})
        self.assertEqual(again.status_code, 304)

    def test_only_this_origin_and_the_configured_ones_may_frame_files(self):
        self.mine("a.md", "Text.")
        with override_settings(CORS_ORIGINS=["https://front.example.org"]):
            response = self.client.get("/content/a.md")
        policy = response["Content-Security-Policy"]
        self.assertTrue(policy.startswith("sandbox;"))
        self.assertTrue(policy.endswith("frame-ancestors 'self' https://front.example.org"))
        self.assertNotIn("X-Frame-Options", response)
        self.assertTrue(self.client.get("/content/b.md").headers["X-Frame-Options"])

    def test_a_name_is_found_with_other_unicode_digits(self):
        self.mine("leave 2026.md", "Text.")
        self.assertEqual(self.client.get("/content/leave 𝟤𝟢𝟤𝟨.md").status_code, 200)

    # Page images

    def test_formats_without_pages_and_missing_pages_are_not_found(self):
        document = self.mine("a.md", "Text.")
        paged = self.mine("a.pdf", building.pdf(["One."]))
        for path in (
            self.image(document),
            self.image(paged, 0),
            self.image(paged, 2),
            self.image(paged, 10**20),
        ):
            self.assertEqual(self.client.get(path).status_code, 404, path)

    def test_a_page_is_rendered_only_once(self):
        document = self.mine("a.pdf", building.pdf(["One."]))
        with mock.patch.object(process, "render", wraps=process.render) as render:
            first, second = (self.client.get(self.image(document)) for _ in range(2))
        self.assertEqual((render.call_count, first.content), (1, second.content))
        known = {"if-none-match": first["ETag"]}
        self.assertEqual(self.client.get(self.image(document), headers=known).status_code, 304)

    def test_a_page_that_is_rendered_too_slowly_is_not_reported_as_missing(self):
        document = self.mine("a.pdf", building.pdf(["One."]))
        with mock.patch.object(process, "IMAGE_SECONDS", 0):
            late = self.client.get(self.image(document))
        self.assertEqual((late.status_code, late["Retry-After"]), (503, "10"))
        self.assertEqual(self.client.get(self.image(document)).status_code, 200)

    def test_a_truncated_image_is_not_cached(self):
        document = self.mine("a.pdf", building.pdf(["One."]))
        with mock.patch.object(process, "IMAGE_BYTES", 500):
            self.assertEqual(self.client.get(self.image(document)).status_code, 404)
        self.assertEqual(self.client.get(self.image(document)).status_code, 200)

    def test_a_huge_page_is_scaled_down(self):
        data = building.pdf(["One."]).replace(b"[0 0 595 842]", b"[0 0 14400 100]")
        document = self.mine("a.pdf", data)
        self.assertEqual(Image.open(BytesIO(self.client.get(self.image(document)).content)).size[0], 2000)


def test_downloads_that_wait_for_the_storage_do_not_delay_other_work_in_threads():
    responds = threading.Event()

    class Hanging(BytesIO):
        def read(self, size=-1):
            responds.wait(HANG_SECONDS)
            return super().read(size)

    async def scenario():
        document = Document(size=5, sha256=hashlib.sha256(b"words").hexdigest())
        bodies = [
            content._pieces_async(content._Pieces(document, File(Hanging(b"words")), 5)) for _ in range(40)
        ]
        begun = [asyncio.ensure_future(anext(body)) for body in bodies]
        try:
            await asyncio.sleep(0)
            await asyncio.wait_for(asyncio.to_thread(int), MARGIN_SECONDS)
        finally:
            responds.set()
            assert set(await asyncio.gather(*begun)) == {b"words"}

    asyncio.run(scenario())


class LongTransferTests(MediaMixin, TransactionTestCase):
    def withdrawing(self, function, document):
        """The function, which takes 0.3 s longer, while the right to the document is withdrawn."""

        def slow(*arguments):
            result = function(*arguments)
            set_audience(document, Audience())
            threading.Event().wait(0.3)
            return result

        return slow

    async def test_nothing_is_sent_if_a_right_is_withdrawn_while_the_storage_hangs(self):
        owner = await User.objects.acreate(username="owner")
        document = await sync_to_async(self.add)("a.txt", b"secret", owner=owner, read=False)
        await Document.objects.aupdate(version=1)
        await sync_to_async(set_audience)(document, Audience(everyone=True))
        client = AsyncClient()
        await client.aforce_login(await User.objects.acreate(username="reader"))
        with (
            mock.patch.object(checked_transfer, "CHECK_SECONDS", 0.2),
            mock.patch.object(files, "open_file", self.withdrawing(files.open_file, document)),
        ):
            response = await client.get(f"/content/{document.public_id}/a.txt")
            with self.assertRaises(RequestAborted):
                self.assertEqual([piece async for piece in response], [])

    def test_no_page_is_sent_if_a_right_is_withdrawn_while_it_is_rendered(self):
        owner, reader = (User.objects.create(username=name) for name in ("owner", "reader"))
        document = self.add("plan.pdf", building.pdf(["One."]), owner=owner)
        set_audience(document, Audience(everyone=True))
        self.client.force_login(reader)
        address = f"/content/{document.public_id}/pages/1.png"
        with mock.patch.object(checked_transfer, "CHECK_SECONDS", 0.2):
            self.assertEqual(self.client.get(address).status_code, 200)
            with mock.patch.object(files, "page_image", self.withdrawing(files.page_image, document)):
                self.assertEqual(self.client.get(address).status_code, 404)

    async def test_a_transfer_ends_when_access_is_revoked(self):
        owner = await User.objects.acreate(username="owner")
        document = await sync_to_async(self.add)("a.txt", b"x" * 1_000_000, owner=owner, read=False)
        await Document.objects.aupdate(version=1)
        reader = await User.objects.acreate(username="reader")
        _, secret = await sync_to_async(ApiKey.objects.issue)(reader, "")
        everyone = Audience(everyone=True)
        for name, withdraw in {
            "the document's readers": lambda: set_audience(document, Audience()),
            "the key": lambda: ApiKey.objects.update(revoked_at=timezone.now()),
            "the account": lambda: User.objects.filter(pk=reader.pk).update(is_active=False),
            "the document": lambda: Document.objects.filter(pk=document.pk).delete(),
        }.items():
            with mock.patch.object(checked_transfer, "CHECK_SECONDS", -1):
                await sync_to_async(set_audience)(document, everyone)
                await ApiKey.objects.aupdate(revoked_at=None)
                await User.objects.aupdate(is_active=True)
                response = await AsyncClient().get(
                    f"/content/{document.public_id}/a.txt", headers={"authorization": f"Bearer {secret}"}
                )
                received = 0
                with self.assertRaises(RequestAborted):
                    async for piece in response:
                        if not received:
                            await sync_to_async(withdraw)()
                        received += len(piece)
                self.assertEqual(received, 256 * 1024, name)
