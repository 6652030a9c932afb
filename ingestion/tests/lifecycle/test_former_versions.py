"""Changes between two versions of a document: who sees them, how long they are kept, and the comparison."""

import random
import time
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.core.files.base import ContentFile
from django.db import connection
from django.test import SimpleTestCase, TestCase, override_settings
from django.utils import timezone

from chatsite.accounts.models import User
from chatsite.db.threads import reading_as, reading_everything
from ingestion import documents, quota
from ingestion.access.lists import Audience, set_audience
from ingestion.documents import upsert
from ingestion.models import Document, FormerVersion
from ingestion.tests.factories import command_principal, make_user
from ingestion.tests.media import MediaMixin
from ingestion.versions import former_versions
from ingestion.versions.text_comparison import compare, matches

FIRST = "# Leave\n\nFive days may be carried over.\n\nAsk your manager.\n\nUse them until March."
SECOND = FIRST.replace("Five", "Six").replace("manager.", "manager.\n\nNew: half days count.")


def fates(before, after):
    """(kind, text) of the paragraphs, with {+added+} and [-removed-] words."""
    marks = {"same": "%s", "added": "{+%s+}", "removed": "[-%s-]"}
    return [
        (each.kind, " ".join(marks[piece.kind] % piece.text for piece in each.pieces))
        for each in compare(before, after)
    ]


class ComparingTests(SimpleTestCase):
    def test_changed_added_and_removed_paragraphs_are_distinguished(self):
        self.assertEqual(
            fates(FIRST, SECOND),
            [
                ("same", "# Leave"),
                ("changed", "[-Five-] {+Six+} days may be carried over."),
                ("same", "Ask your manager."),
                ("added", "{+New: half days count.+}"),
                ("same", "Use them until March."),
            ],
        )
        self.assertEqual(fates(SECOND, FIRST)[3], ("removed", "[-New: half days count.-]"))

    def test_words_at_the_end_of_a_paragraph_stay_in_it(self):
        self.assertEqual(
            fates("Take five days off.\n\nB stays here.", "Take five days.\n\nB stays here."),
            [("changed", "Take five [-days off.-] {+days.+}"), ("same", "B stays here.")],
        )
        self.assertEqual(fates("A b c d\n\nE f g h", "A b c\n\nE f g i"),
                         [("changed", "A b c [-d-]"), ("changed", "E f g [-h-] {+i+}")])  # fmt: skip

    def test_paragraphs_with_few_common_words_are_shown_one_after_the_other(self):
        self.assertEqual(
            [kind for kind, _ in fates("Cats sleep all day long.", "Taxes are due in the spring.")],
            ["removed", "added"],
        )

    def test_other_boundaries_of_passages_are_not_a_change(self):
        self.assertEqual(
            [
                kind
                for kind, _ in fates("One two.\n\nThree four. Five six.", "One two. Three four.\n\nFive six.")
            ],
            ["same", "same"],
        )

    def test_empty_and_equal_texts(self):
        self.assertEqual(fates("", ""), [])
        self.assertEqual(fates("", "A."), [("added", "{+A.+}")])
        self.assertEqual(fates("A.\n\nB.", "A.\n\nB."), [("same", "A."), ("same", "B.")])

    def test_random_edits_leave_both_texts_readable(self):
        chance = random.Random(86)
        for _ in range(300):
            old = [chance.choice("abcdefgh") for _ in range(chance.randrange(40))]
            new = [chance.choice("abcdefgh") for _ in range(chance.randrange(40))]
            i = j = 0
            for start, other, length in matches(old, new):
                self.assertTrue(start >= i and other >= j and length > 0)
                self.assertEqual(old[start : start + length], new[other : other + length])
                i, j = start + length, other + length
            pieces = [piece for each in compare("\n\n".join(old), "\n\n".join(new)) for piece in each.pieces]
            kept = [word for piece in pieces if piece.kind != "added" for word in piece.text.split()]
            here = [word for piece in pieces if piece.kind != "removed" for word in piece.text.split()]
            self.assertEqual((kept, here), (old, new))

    @pytest.mark.slow
    def test_comparing_the_largest_texts_takes_seconds_for_any_content(self):
        chance = random.Random(87)
        size = former_versions.MAX_CHARACTERS // 6
        words = [f"{chance.randrange(3_000):05}" for _ in range(size)]
        others = list(words)
        chance.shuffle(others)
        for before, after in (
            (" ".join(words), " ".join(others)),
            ("\n\n".join(words), "\n\n".join(others)),
            ("a b " * (size // 2), "b a " * (size // 2 + 1)),
            (
                "\n\n".join(f"{n} x" for n in range(size)),
                "\n\n".join(f"{n} x" for n in reversed(range(size))),
            ),
        ):
            started = time.thread_time()  # CPU time, because other tests run at the same time
            compare(before, after)
            self.assertLess(time.thread_time() - started, 20)


@pytest.mark.slow
class FormerVersionTests(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.owner, self.reader, self.late = make_user("ann"), make_user("rob"), make_user("lea")
        self.before = Audience(user_ids=frozenset({self.reader.pk}))

    def put(self, text, audience=None):
        put = upsert(
            ContentFile(text.encode()), "guide.md", owner=self.owner, audience=audience or self.before
        )
        if put.outcome != "unchanged":
            documents.read_document(put.document.pk, put.replacement)
        self.document = Document.objects.get(pk=put.document.pk)
        return self.document

    def page(self, user, query=""):
        self.client.force_login(user)
        return self.client.get(f"/documents/{self.document.public_id}/changes/{query}")

    def seen_by(self, user):
        with reading_as(user.pk):
            return list(
                former_versions.visible(command_principal(user), self.document).values_list(
                    "version", flat=True
                )
            )

    def test_the_page_says_what_changed_in_words_and_not_by_colour_alone(self):
        self.put(FIRST)
        self.put(SECOND)
        page = self.page(self.reader)
        self.assertContains(page, "1 paragraph changed")
        self.assertContains(page, "1 added · 0 removed")
        end = '<span class="hidden">(end of %s)</span>'
        removed = f'<del><span class="hidden">removed:</span> Five{end % "removed"}</del>'
        added = f'<ins><span class="hidden">added:</span> Six{end % "added"}</ins>'
        self.assertContains(page, removed, html=True)
        self.assertContains(page, added, html=True)
        self.assertContains(
            self.client.get(f"/documents/{self.document.public_id}/"), "What changed since version 1"
        )
        self.assertContains(self.page(self.reader, "?from=1&to=1"), "The text is the same in both versions.")

    def test_any_two_kept_versions_can_be_compared(self):
        for text in (FIRST, SECOND, FIRST.replace("March", "May")):
            self.put(text)
        self.assertContains(self.page(self.owner, "?from=1&to=2"), "1 added · 0 removed")
        self.assertContains(self.page(self.owner, "?from=1"), "1 paragraph changed")
        self.assertContains(self.page(self.owner, "?from=7"), "is not kept")
        self.assertContains(self.page(self.owner, "?from=2&to=9"), "is not kept")

    def test_reading_the_same_file_again_keeps_no_version(self):
        self.put(FIRST)
        documents.retry(self.document)
        documents.read_document(self.document.pk)
        self.assertFalse(FormerVersion.objects.exists())
        self.put(SECOND)
        kept = FormerVersion.objects.get()
        self.assertEqual((kept.since, kept.version), (1, 2))
        self.assertEqual(former_versions.with_number(FormerVersion.objects.all(), 1), kept)

    def test_readers_added_with_the_new_file_do_not_see_the_former_version(self):
        self.put(FIRST)
        self.put(SECOND, Audience(everyone=True))
        self.assertEqual(self.seen_by(self.reader), [1])
        self.assertEqual(self.seen_by(self.late), [])
        page = self.page(self.late)
        self.assertNotContains(page, "Five")
        self.assertContains(page, "No earlier version that you may read is kept.")
        self.assertContains(self.page(self.late, "?from=1"), "you could not read the document then")
        self.assertNotContains(self.client.get(f"/documents/{self.document.public_id}/"), "What changed")

    def test_former_readers_of_the_document_see_no_former_version(self):
        self.put(FIRST)
        self.put(SECOND)
        set_audience(self.document, Audience())
        self.assertEqual(self.seen_by(self.reader), [])
        self.assertEqual(self.page(self.reader).status_code, 404)
        set_audience(self.document, self.before)
        self.assertEqual(self.seen_by(self.reader), [1])

    def test_former_versions_follow_the_present_members_of_a_group(self):
        group = Group.objects.create(name="HR")
        self.reader.groups.add(group)
        of_group = Audience(group_ids=frozenset({group.pk}))
        self.put(FIRST, of_group)
        self.put(SECOND, of_group)
        self.assertEqual(self.seen_by(self.reader), [1])
        self.reader.groups.clear()
        self.assertEqual(self.seen_by(self.reader), [])

    def test_postgresql_shows_a_former_text_only_to_readers_of_both_versions(self):
        self.put(FIRST)
        self.put(SECOND, Audience(everyone=True))

        def rows(reader):
            with reading_as(reader), connection.cursor() as cursor:
                cursor.execute("SELECT content FROM ingestion_formerversion")
                return cursor.fetchall()

        for nobody in (None, self.late.pk, "0", "x"):
            self.assertEqual(rows(nobody), [])
        self.assertEqual(len(rows(self.reader.pk)), 1)
        with reading_everything():
            set_audience(self.document, Audience())
        self.assertEqual((rows(self.reader.pk), len(rows(self.owner.pk))), ([], 1))

    def test_the_worker_purges_former_versions_by_number_and_age(self):
        with override_settings(KEPT_VERSIONS=2):
            for number in range(5):
                self.put(f"# Guide\n\nNumber {number} counts.")
            self.assertEqual(list(FormerVersion.objects.values_list("version", flat=True)), [4, 3])
        with override_settings(KEPT_VERSIONS=1):
            self.assertEqual(former_versions.purge(), 1)
        FormerVersion.objects.update(replaced_at=timezone.now() - timedelta(days=400))
        User.objects.filter(pk=self.owner.pk).update(legal_hold="case 1")
        self.assertEqual(former_versions.purge(), 0)
        User.objects.filter(pk=self.owner.pk).update(legal_hold="")
        with override_settings(KEPT_VERSION_DAYS=0):
            self.assertEqual(former_versions.purge(), 0)
        self.assertEqual((former_versions.purge(), FormerVersion.objects.count()), (1, 0))
        with override_settings(KEPT_VERSIONS=0):
            self.put(SECOND)
        self.assertFalse(FormerVersion.objects.exists())

    def test_former_texts_count_in_the_quota_and_are_dropped_without_room(self):
        self.put(FIRST)
        self.put(SECOND)
        kept = FormerVersion.objects.get()
        self.assertEqual(quota.usage_of(self.owner).size, len(SECOND.encode()) + kept.size)
        with override_settings(USER_MAX_BYTES=len(SECOND.encode()) + kept.size + 10):
            self.put(FIRST)
        self.assertEqual(list(FormerVersion.objects.values_list("version", flat=True)), [1])

    def test_former_versions_are_deleted_with_the_document_by_any_version_of_the_site(self):
        self.put(FIRST)
        self.put(SECOND)
        documents.delete_document(self.document)
        self.assertFalse(FormerVersion.objects.exists())
        self.put(FIRST)
        self.put(SECOND)
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for table in ("vector", "passagewords", "passage", "externalid"):
                cursor.execute(f"DELETE FROM ingestion_{table}")
            cursor.execute("DELETE FROM ingestion_document")
        self.assertFalse(FormerVersion.objects.exists())
