"""A citation always opens the cited document, whatever others share or delete."""

import pytest
from django.core.files.base import ContentFile
from django.db import transaction
from django.test import TestCase

from chatsite.accounts.principal import Principal
from history import recording
from history.models import Conversation
from ingestion import documents
from ingestion.access.lists import Audience, set_audience
from ingestion.file_names import UploadRefused, file_name
from ingestion.models import CitedName, Document
from ingestion.portal.content import SUCCESSOR
from ingestion.search.name_resolution import resolve_name
from ingestion.search.retrieval import search
from ingestion.tests.factories import make_user
from ingestion.tests.media import MediaMixin

HTML = {"accept": "text/html,*/*;q=0.8"}
PLAN = "# Plan\n\nThe ferry sails at nine."


def body(response):
    return b"".join(response.streaming_content).decode()


@pytest.mark.slow
class CitedNames(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.reader, self.stranger = make_user("reader"), make_user("stranger")
        self.principal = Principal(self.reader.pk, "command")
        self.plan = self.add("plan.md", PLAN, owner=self.reader, audience=Audience())
        self.client.force_login(self.reader)

    def cite(self):
        """Store an answer whose sources are all passages found; return their names."""
        conversation = Conversation.objects.create(owner=self.reader)
        answer = recording.append(conversation, "assistant", state="queued")
        passages = search(self.principal, "ferry").passages
        sources = [
            {
                "document_id": passage.document_id,
                "document_version": passage.document_version,
                "public_id": str(passage.public_id),
                "passage_id": passage.passage_id,
                "rank": rank,
                "label": passage.label,
                "title": passage.title,
                "heading": passage.heading,
                "page": passage.page,
                "content": passage.content,
                "captions": [],
                "given": "text",
                "score": passage.score,
                "ranker_score": None,
                "found_by": passage.found_by,
            }
            for rank, passage in enumerate(passages, start=1)
        ]
        recording.record_context(answer.pk, sources, [], None)
        return {passage.public_id: passage.sourcefile for passage in passages}

    def namesake(self, text="# Plan\n\nThe ferry sails at noon, says somebody else.", **more):
        return self.add("plan.md", text, owner=self.stranger, **more)

    def opened(self, name):
        response = self.client.get(f"/content/{name}")
        return body(response) if response.status_code == 200 else response.status_code

    def test_an_empty_or_failed_namesake_does_not_make_a_name_ambiguous(self):
        self.namesake("", read=False)
        Document.objects.filter(owner=self.stranger).update(status="failed")
        self.assertEqual(self.opened("plan.md"), PLAN)
        self.assertEqual(list(self.cite().values()), ["plan.md"])

    def test_a_namesake_does_not_inherit_citations(self):
        self.cite()
        self.namesake()
        self.assertEqual(self.opened("plan.md"), PLAN)
        self.assertEqual(self.opened("plan.md%23page=1"), PLAN)

    def test_a_name_with_other_unicode_digits_does_not_inherit_citations(self):
        self.add("report-2026.md", PLAN + " In 2026.", owner=self.reader, audience=Audience())
        self.cite()
        twin = self.add("twin.md", "# Twin\n\nThe ferry never sails.", owner=self.stranger)
        name = "report-\U0001d7e4\U0001d7e2\U0001d7e4\U0001d7e8.md"
        self.assertEqual(file_name(name), "report-2026.md")
        Document.objects.filter(pk=twin.pk).update(name=name)  # in the format of earlier versions
        self.assertEqual(self.opened(name), PLAN + " In 2026.")
        self.client.force_login(make_user("third"))
        self.assertEqual(self.opened(name), "# Twin\n\nThe ferry never sails.")

    def test_names_that_look_identical_are_the_same_name(self):
        for name in (
            "plan\u200b.md", "pl\u200dan.md", "plan.md\u200b", "plan\u2060.md", "\u200fplan.md",
            "plan\ufe0f.md", "pl\u202ean\u202c.md", "plan\u3164.md", "plan\U000e0041.md",
            "\tplan\ufeff.md\u00a0",
        ):  # fmt: skip
            self.assertEqual(file_name(name), "plan.md", ascii(name))
        self.assertEqual(file_name("my\tgreat\u00a0new\u202fplan\u3000b.md"), "my great new plan b.md")
        self.assertEqual(file_name("cafe\u034f\u0301.md"), "caf\u00e9.md")
        for name in (
            "می\u200cخواهم.md",
            "\u2764\ufe0f.md",
            "\U0001f469\u200d\U0001f52c.md",
            "葛\U000e0100.md",
        ):
            self.assertEqual(file_name(name), name)
        with self.assertRaises(UploadRefused):
            file_name("\u200b\u2060.\u200d")
        again = self.add("plan\u200b.md", f"{PLAN} Daily.", owner=self.reader, audience=Audience())
        self.assertEqual((again.pk, again.name), (self.plan.pk, "plan.md"))

    def test_names_are_case_sensitive(self):
        twin = self.add("Plan.md", "# Plan\n\nThe ferry sails at noon.", owner=self.stranger)
        names = self.cite()
        self.assertEqual(names[self.plan.public_id], f"plan~{self.plan.public_id.hex[:8]}.md")
        self.assertEqual(names[twin.public_id], f"Plan~{twin.public_id.hex[:8]}.md")
        for document in (self.plan, twin):
            self.assertEqual(resolve_name(self.principal, names[document.public_id]).document, document)
        self.assertEqual(self.opened("plan.md"), PLAN)

    def test_paths_are_case_sensitive(self):
        first = self.add("trip.md", f"{PLAN} Weekly.", owner=self.reader, folder="a", audience=Audience())
        second = self.add("trip.md", f"{PLAN} Daily.", owner=self.stranger, folder="A")
        third = self.add("Ümlaut.md", f"{PLAN} Never.", owner=self.reader, audience=Audience())
        fourth = self.add("ümlaut.md", f"{PLAN} Always.", owner=self.stranger)
        names = self.cite()
        for document in (first, second, third, fourth):
            self.assertIn(f"~{document.public_id.hex[:8]}.md", names[document.public_id])

    def test_after_a_deletion_a_namesake_is_not_opened_silently(self):
        self.cite()
        self.namesake()
        documents.delete_document(self.plan)
        response = self.client.get("/content/plan.md")
        self.assertEqual(response.status_code, 300)
        self.assertEqual(len(response.json()["choices"]), 1)
        self.assertEqual(response.json()["error"], SUCCESSOR)
        page = self.client.get("/content/plan.md", headers=HTML)
        self.assertContains(page, "can no longer be opened", status_code=300)
        self.assertNotContains(page, "Several", status_code=300)

    def test_a_cited_document_that_is_no_longer_readable_looks_deleted(self):
        self.cite()
        self.namesake()
        with transaction.atomic():
            documents.delete_document(self.plan)
            deleted = self.client.get("/content/plan.md", headers=HTML).content
            transaction.set_rollback(True)
        Document.objects.filter(pk=self.plan.pk).update(owner=self.stranger)
        self.plan.refresh_from_db()
        set_audience(self.plan, Audience())
        closed = self.client.get("/content/plan.md", headers=HTML)
        self.assertEqual((closed.status_code, closed.content), (300, deleted))

    def test_a_deleted_document_without_a_namesake_is_not_found(self):
        self.cite()
        documents.delete_document(self.plan)
        self.assertEqual(self.opened("plan.md"), 404)

    def test_a_cited_name_is_not_reused_for_another_document(self):
        self.cite()
        documents.delete_document(self.plan)
        other = self.namesake()
        [name] = self.cite().values()
        self.assertEqual(name, f"plan~{other.public_id.hex[:8]}.md")
        self.assertEqual(resolve_name(self.principal, name).document, other)

    def test_a_cited_path_is_not_reused_for_another_document(self):
        first = self.add("trip.md", f"{PLAN} Weekly.", owner=self.reader, folder="a", audience=Audience())
        second = self.add("trip.md", f"{PLAN} Daily.", owner=self.reader, folder="b", audience=Audience())
        self.assertEqual(self.cite()[first.public_id], "a/trip.md")
        documents.delete_document(first)
        other = self.namesake(folder="a")
        Document.objects.filter(pk=other.pk).update(name="trip.md")
        names = self.cite()
        self.assertEqual(names[second.public_id], "b/trip.md")
        self.assertEqual(names[other.public_id], f"trip~{other.public_id.hex[:8]}.md")

    def test_an_ambiguous_name_lists_only_the_readable_candidates(self):
        shared = self.namesake(folder="<b>shared</b>")
        hidden = self.namesake(audience=Audience(), folder="secret")
        answer = self.client.get("/content/plan.md")
        self.assertEqual(answer.status_code, 300)
        self.assertEqual(
            [choice["url"] for choice in answer.json()["choices"]],
            [f"/content/{each.public_id}/plan.md" for each in (shared, self.plan)],
        )
        self.assertNotIn(str(hidden.public_id), answer.content.decode())
        self.assertNotIn("secret", answer.content.decode())
        for choice in answer.json()["choices"]:
            self.assertEqual(self.client.get(choice["url"]).status_code, 200)
        page = self.client.get("/content/plan.md", headers=HTML)
        self.assertEqual((page.status_code, page["Content-Type"]), (300, "text/html; charset=utf-8"))
        self.assertContains(page, "&lt;b&gt;shared&lt;/b&gt;", status_code=300)
        self.assertIn("sandbox", page["Content-Security-Policy"])
        self.client.force_login(self.stranger)
        self.assertEqual(self.client.get("/content/plan.md").status_code, 300)
        self.client.force_login(make_user("third"))
        self.assertEqual(self.client.get("/content/plan.md").status_code, 200)

    def test_citations_of_one_reader_do_not_affect_names_for_another(self):
        third = make_user("third")
        self.cite()
        self.namesake()
        self.client.force_login(third)
        self.assertIn("somebody else", self.opened("plan.md"))

    def test_a_url_with_the_id_opens_only_that_document(self):
        address = f"{self.plan.public_id}/plan.md"
        self.namesake(folder=str(self.plan.public_id))
        self.assertEqual(self.opened(address), PLAN)
        self.assertEqual(self.opened(f"{self.plan.public_id}/any%20other%20name.pdf%23page=3"), PLAN)
        self.assertEqual(self.opened(str(self.plan.public_id)), PLAN)
        documents.delete_document(self.plan)
        self.assertEqual(self.opened(address), 404)

    def test_an_unreadable_document_is_not_found_by_its_id(self):
        hidden = self.namesake(audience=Audience())
        self.assertEqual(self.opened(f"{hidden.public_id}/plan.md"), 404)

    def test_a_folder_that_looks_like_an_id_is_not_part_of_a_label(self):
        first, second = (
            self.add(
                "x.md", f"{PLAN} Also in {folder}.", owner=self.reader, folder=folder, audience=Audience()
            )
            for folder in (str(self.plan.public_id), "b")
        )
        names = self.cite()
        self.assertEqual(names[first.public_id], f"x~{first.public_id.hex[:8]}.md")
        self.assertEqual(names[second.public_id], "b/x.md")

    def test_a_new_version_is_the_same_document(self):
        self.cite()
        documents.read_document(
            self.plan.pk, documents.replace_file(self.plan, ContentFile(b"# Plan\n\nNew ferry."))
        )
        self.assertEqual(self.opened("plan.md"), "# Plan\n\nNew ferry.")
        self.assertEqual(list(self.cite().values()), ["plan.md"])
        self.assertEqual(CitedName.objects.count(), 1)

    def test_if_a_name_was_cited_for_two_documents_the_reader_chooses(self):
        """Only answers of earlier versions of the site can have such names."""
        other = self.namesake()
        self.cite()
        digest = CitedName.objects.get(document=self.plan.public_id).name
        CitedName.objects.create(reader=self.reader, name=digest, document=other.public_id)
        name = f"plan~{self.plan.public_id.hex[:8]}.md"
        self.assertEqual(self.client.get(f"/content/{name}").status_code, 300)
