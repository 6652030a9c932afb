"""Changes of many documents in the admin: selecting, confirming, applying by a worker, and undoing."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.files.base import ContentFile
from django.db import connection
from django.test import TestCase
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from chatsite.accounts.models import AuditEntry, User
from ingestion import documents
from ingestion.access.lists import Audience, audience_of
from ingestion.bulk import changes
from ingestion.bulk.models import BulkChange, BulkItem
from ingestion.details import MAX_LABELS
from ingestion.models import Document, Passage, SourceFile
from ingestion.tests.factories import make_document, make_user
from ingestion.tests.media import MediaMixin

LIST = "/admin/ingestion/document/"
CHANGES = "/admin/ingestion/bulkchange/"


def prefixed(kind, **fields):
    return {"kind": kind} | {f"{kind}-{name}": value for name, value in fields.items()}


@pytest.mark.slow
class BulkChangeTests(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.admin = User.objects.create_superuser("admin")
        self.ann, self.bob = make_user("ann"), make_user("bob", first_name="Bob", last_name="Bell")
        self.group = Group.objects.create(name="HR")
        self.client.force_login(self.admin)

    def choose(self, *chosen):
        form = {"action": "change_many", "_selected_action": [document.pk for document in chosen]}
        response = self.client.post(LIST, form)
        change = BulkChange.objects.latest("pk")
        self.assertRedirects(response, f"{CHANGES}{change.pk}/change/")
        return change

    def decide(self, change, kind, *, work=True, **fields):
        response = self.client.post(
            f"{CHANGES}{change.pk}/change/", prefixed(kind, **fields) | {"confirmed": "1"}
        )
        self.assertEqual(response.status_code, 302, response.content)
        if work:
            with self.captureOnCommitCallbacks(execute=True):
                self.assertFalse(changes.work(change.pk))
        return self.result(change)

    def result(self, change):
        return [
            (item.outcome, item.reason)
            for item in BulkItem.objects.filter(change=change).order_by("document_id")
        ]

    def undo(self, change):
        self.client.post(f"{CHANGES}{change.pk}/change/", {"undo": "1"})
        back = BulkChange.objects.latest("pk")
        changes.work(back.pk)
        return self.result(back)

    def test_adding_removing_and_setting_readers_each_create_an_audit_entry(self):
        one = make_document("one.md", owner=self.ann, groups=[self.group])
        other = make_document("other.md", users=[self.bob])
        added = self.choose(one, other)
        self.assertEqual(
            self.decide(added, "readers", how="add", users=[self.bob.pk]), [("done", ""), ("unchanged", "")]
        )
        one.refresh_from_db()
        bob_too = Audience(user_ids=frozenset({self.bob.pk}), group_ids=frozenset({self.group.pk}))
        self.assertEqual(audience_of(one), bob_too)
        self.decide(self.choose(one, other), "readers", how="remove", users=[self.bob.pk])
        for each in (one, other):
            each.refresh_from_db()
        self.assertEqual((audience_of(one).user_ids, audience_of(other)), (frozenset(), Audience()))
        self.decide(self.choose(one, other), "readers", how="set", everyone="on")
        for each in (one, other):
            each.refresh_from_db()
            self.assertEqual(audience_of(each), Audience(everyone=True))
        self.assertEqual(AuditEntry.objects.filter(action="rights_changed", actor="admin").count(), 5)

    def test_readers_added_to_a_public_document_do_not_count_as_a_change(self):
        one, other = make_document("one.md", everyone=True), make_document("other.md", owner=self.ann)
        change = self.choose(one, other)
        page = f"{CHANGES}{change.pk}/change/"
        asked = self.client.post(page, prefixed("readers", how="add", users=[self.bob.pk, self.ann.pk]))
        self.assertContains(asked, "1 of them can be read by everyone already.")
        already = ("unchanged", changes.ALL_READ)
        added = self.decide(change, "readers", how="add", users=[self.bob.pk, self.ann.pk])
        self.assertEqual(added, [already, ("done", "")])
        owner_alone = self.decide(self.choose(other), "readers", how="add", users=[self.ann.pk])
        self.assertEqual(owner_alone, [("unchanged", "")])
        all_of_them = self.client.post(
            f"{CHANGES}{self.choose(one).pk}/change/", prefixed("readers", how="add", everyone="on")
        )
        self.assertContains(all_of_them, "Nothing will change.")
        still = self.decide(self.choose(one), "readers", how="remove", users=[self.bob.pk])
        self.assertEqual(still, [("unchanged", changes.ALL_STILL_READ)])
        guests = self.decide(self.choose(one), "readers", how="add", guests="on")
        self.assertEqual(guests, [("done", "")])
        subjects = AuditEntry.objects.filter(action="rights_changed").values_list("subject", flat=True)
        self.assertEqual(len([each for each in subjects if "Everyone" in each]), 1)

    def test_readers_set_on_a_public_document_are_in_the_audit_log(self):
        document = make_document("one.md", everyone=True, groups=[self.group])
        changed = self.decide(self.choose(document), "readers", how="set", everyone="on", users=[self.bob.pk])
        self.assertEqual(changed, [("done", "")])
        entry = AuditEntry.objects.get(action="rights_changed")
        said = ": Everyone who signs in, no longer by name: HR, also by name: bob"
        self.assertTrue(entry.subject.endswith(said), entry.subject)

    def test_readers_removed_before_a_file_is_read_do_not_return_with_it(self):
        document = self.add("plan.md", b"# Draft", owner=self.ann, audience=Audience())
        bobs = Audience(user_ids=frozenset({self.bob.pk}))
        put = documents.upsert(ContentFile(b"# Final"), "plan.md", owner=self.ann, audience=bobs)
        result = self.decide(self.choose(document), "readers", how="remove", users=[self.bob.pk])
        self.assertEqual(result, [("unchanged", "")])
        documents.read_document(document.pk, put.replacement)
        self.assertEqual(audience_of(Document.objects.get()), Audience())

    def test_adding_readers_needs_confirmation_and_shows_the_number_of_people(self):
        document = make_document("one.md", owner=self.ann)
        change = self.choose(document)
        page = f"{CHANGES}{change.pk}/change/"
        response = self.client.post(page, prefixed("readers", how="add", users=[self.bob.pk]))
        self.assertContains(response, "1 person will be able to read all of them")
        change.refresh_from_db()
        self.assertEqual(change.state, "chosen")
        self.assertContains(self.client.post(page, prefixed("readers", how="add")), "Choose the readers")

    @pytest.mark.slow
    def preview(self, *chosen, **fields):
        """Who gains and who loses access, each as [(name, number of documents)] and a number of people."""
        page = f"{CHANGES}{self.choose(*chosen).pk}/change/"
        shown = self.client.post(page, prefixed("readers", **fields)).context["preview"]
        sides = (shown.gaining, shown.losing)
        return [([(each.name, each.documents) for each in side.readers], side.people) for side in sides]

    def test_the_preview_names_who_gains_and_who_loses_access(self):
        self.bob.groups.add(self.group)
        one = make_document("one.md", owner=self.ann, users=[self.bob])
        other = make_document("other.md", owner=self.ann, groups=[self.group], users=[self.bob])
        third = make_document("third.md", everyone=True)
        bob, hr = "Bob Bell (bob)", "HR"
        gains, loses = self.preview(one, other, third, how="remove", users=[self.bob.pk])
        # Bob still reads the other one through HR.
        self.assertEqual((gains, loses), (([], 0), ([(bob, 1)], 1)))
        gains, loses = self.preview(one, other, how="add", groups=[self.group.pk])
        self.assertEqual((gains, loses), (([], 0), ([], 0)))  # HR has only bob, who reads both already
        gains, loses = self.preview(one, third, how="set", groups=[self.group.pk])
        everyone = [("Everyone who signs in", 1)]
        # Everyone except bob.
        self.assertEqual((gains, loses), (([], 0), (everyone, User.objects.count() - 1)))
        gains, loses = self.preview(one, other, how="set", everyone="on", guests="on")
        self.assertEqual(gains[0], [("Everyone who signs in", 2), ("Guests", 2)])
        self.assertEqual((gains[1], loses), (User.objects.count() - 2, ([], 0)))
        cid = make_user("cid")
        self.group.user_set.add(cid)
        gains, loses = self.preview(one, how="set", groups=[self.group.pk])
        self.assertEqual((gains, loses), (([(hr, 1)], 1), ([], 0)))

    def test_the_preview_lists_300_readers_and_counts_the_others(self):
        people = [make_user(f"p{number}") for number in range(305)]
        document = make_document("one.md", owner=self.ann, users=people)
        change = self.choose(document)
        page = self.client.post(
            f"{CHANGES}{change.pk}/change/", prefixed("readers", how="set", users=[self.bob.pk])
        )
        self.assertContains(page, "305 people, each for at least one document")
        self.assertContains(page, "and 5 more readers")
        self.assertEqual(len(page.context["preview"].losing.readers), 300)

    def test_each_property_can_be_changed_and_undone(self):
        document = make_document("one.md", owner=self.ann, category="old", folder="a", labels=["x"])
        day = timezone.localdate() - timedelta(days=1)
        for kind, fields, column, value in (
            ("category", {"category": "new"}, "category", "new"),
            ("folder", {"folder": "/b//c/"}, "folder", "b/c"),
            ("labels", {"how": "add", "labels": "y, x"}, "labels", ["x", "y"]),
            ("last_day", {"valid_until": day.isoformat()}, "valid_until", day),
            ("owner", {"owner": self.bob.pk}, "owner", self.bob),
            ("readers", {"how": "set", "everyone": "on"}, "access_list", None),
        ):
            with self.subTest(kind):
                document.refresh_from_db()
                before = (getattr(document, column), audience_of(document))
                change = self.choose(document)
                self.assertEqual(self.decide(change, kind, **fields), [("done", "")])
                document.refresh_from_db()
                if value is not None:
                    self.assertEqual(getattr(document, column), value)
                self.assertContains(
                    self.client.get(f"{CHANGES}{change.pk}/change/"), 'value="Undo: 1 document"'
                )
                self.assertEqual(self.undo(change), [("done", "")])
                document.refresh_from_db()
                self.assertEqual((getattr(document, column), audience_of(document)), before)
                self.assertContains(self.client.get(f"{CHANGES}{change.pk}/change/"), "It was undone by")

    def test_the_last_day_has_a_calendar_and_explains_how_to_retire_documents(self):
        change = self.choose(make_document("one.md"))
        page = self.client.get(f"{CHANGES}{change.pk}/change/")
        self.assertContains(page, "To retire documents, give them a day in the past.")
        self.decide(change, "last_day", valid_until="2026-01-31")
        (entry,) = AuditEntry.objects.filter(subject__contains="at once")
        self.assertEqual(entry.subject, f"Last day 2026-01-31 of 1 documents at once (change {change.pk})")
        scripts = [page.text.index(name) for name in ("/admin/jsi18n/", "admin/js/calendar.js")]
        self.assertEqual(scripts, sorted(scripts))  # translations are loaded before the calendar

    def test_documents_changed_again_since_then_are_not_undone(self):
        document = make_document("one.md", category="old")
        change = self.choose(document)
        self.decide(change, "category", category="new")
        Document.objects.update(category="newer")
        self.assertEqual(self.undo(change), [("refused", changes.CHANGED_SINCE)])
        self.assertEqual(Document.objects.get().category, "newer")

    def test_deleted_transferred_and_mirrored_documents_get_their_own_results(self):
        kept, gone, moved, mirrored, double = (
            make_document(f"{name}.md", owner=self.ann, origin=f"user:{self.ann.pk}", folder="a")
            for name in ("kept", "gone", "moved", "mirrored", "double")
        )
        make_document("double.md", owner=self.ann, origin=f"user:{self.ann.pk}", folder="b")
        SourceFile.objects.create(
            document=mirrored, source="s", path="mirrored.md", size=1, modified_ns=0, sha256="0"
        )
        change = self.choose(kept, gone, moved, mirrored, double)
        page = f"{CHANGES}{change.pk}/change/"
        self.client.post(page, prefixed("folder", folder="b"))
        numbers = [each.pk for each in (kept, gone, moved, mirrored, double)]
        gone.delete()
        Document.objects.filter(pk=moved.pk).update(owner=self.bob)
        changes.work(change.pk)
        reasons = dict(change.items.values_list("document", "reason"))
        self.assertEqual(
            [reasons[number] for number in numbers],
            ["", changes.GONE, changes.MOVED, changes.MIRRORED, changes.SAME_NAME],
        )
        self.assertEqual(changes.outcomes(change), {"done": 1, "gone": 1, "refused": 3})
        shown = self.client.get(page)
        self.assertContains(shown, "A document that is gone")
        self.assertContains(self.client.get(f"{page}?outcome=refused"), "3 in all")

    def test_reading_again_skips_documents_that_are_being_read(self):
        ready, waiting = self.add(), self.add(data="Other.", read=False, name="b.md")
        self.assertEqual(
            sorted(self.decide(self.choose(ready, waiting), "read_again")),
            [("done", ""), ("unchanged", "It is being read already.")],
        )
        ready.refresh_from_db()
        self.assertEqual(ready.status, "waiting")

    def test_deleting_removes_files_and_passages_after_confirmation(self):
        document = self.add()
        change = self.choose(document)
        self.assertContains(
            self.client.post(f"{CHANGES}{change.pk}/change/", {"kind": "delete"}), "cannot be undone"
        )
        self.assertEqual(Document.objects.count(), 1)
        self.assertEqual(self.decide(change, "delete"), [("done", "")])
        self.assertEqual((Document.objects.count(), Passage.objects.count()), (0, 0))
        self.assertFalse(document.file.storage.exists(document.file.name))
        self.assertNotContains(self.client.get(f"{CHANGES}{change.pk}/change/"), "Undo:")

    def test_a_user_who_loses_the_permission_meanwhile_changes_nothing_more(self):
        clerk = self.clerk("change_document", "view_document")
        document = make_document("one.md", category="old")
        self.client.force_login(clerk)
        change = self.choose(document)
        self.decide(change, "category", category="new", work=False)
        clerk.user_permissions.clear()
        self.assertFalse(changes.work(change.pk))
        change.refresh_from_db()
        self.assertEqual((change.state, change.reason), ("stopped", "clerk may no longer change documents."))
        self.assertEqual(Document.objects.get().category, "old")

    def test_staff_change_only_what_they_selected_and_may_change(self):
        document = make_document("one.md")
        theirs = self.choose(document)
        clerk = self.clerk("change_document", "view_document")
        self.client.force_login(clerk)
        mine = self.choose(document)
        page = f"{CHANGES}{mine.pk}/change/"
        self.assertNotContains(self.client.get(page), "deletelink")
        self.assertEqual(self.client.post(page, {"kind": "delete", "confirmed": "1"}).status_code, 403)
        foreign = f"{CHANGES}{theirs.pk}/change/"
        self.assertEqual(self.client.post(foreign, prefixed("category", category="x")).status_code, 403)
        for rights in (["view_document"], []):
            clerk.user_permissions.set(Permission.objects.filter(codename__in=rights))
            self.assertEqual(self.client.get(page).status_code, 403)
            self.assertEqual(self.client.post(page, {"stop": "1"}).status_code, 403)
            self.assertEqual(self.client.get(CHANGES).status_code, 403)

    def test_ten_thousand_documents_are_changed_in_several_jobs(self):
        document = make_document("one.md", category="old")
        change = BulkChange.objects.create(actor=self.admin, total=120)
        BulkItem.objects.bulk_create(
            BulkItem(change=change, document_id=document.pk + number, owner=None) for number in range(120)
        )
        self.client.post(f"{CHANGES}{change.pk}/change/", prefixed("category", category="new"))
        jobs = ProcrastinateJob.objects.filter(task_name=changes.TASK)
        self.assertEqual(jobs.get().args, {"change_id": change.pk})
        self.assertTrue(changes.work(change.pk, seconds=0))
        self.assertEqual(changes.outcomes(change), {"done": 1, "gone": 49, "waiting": 70})
        self.client.post(f"{CHANGES}{change.pk}/change/", {"stop": "1"})
        self.assertFalse(changes.work(change.pk))
        self.assertEqual(changes.outcomes(change)["waiting"], 70)

    def test_a_stopped_change_or_undo_can_be_resumed(self):
        documents = [make_document(f"{name}.md", category="old") for name in "ab"]
        change = self.choose(*documents)
        self.decide(change, "category", category="new")
        page = f"{CHANGES}{change.pk}/change/"
        self.client.post(page, {"undo": "1"})
        back = BulkChange.objects.latest("pk")
        page = f"{CHANGES}{back.pk}/change/"
        self.client.post(page, {"stop": "1"})
        self.assertFalse(changes.work(back.pk))
        self.assertContains(self.client.get(page), "admin stopped it.")
        self.client.post(page, {"resume": "1"})
        self.assertFalse(changes.work(back.pk))
        self.assertEqual(set(Document.objects.values_list("category", flat=True)), {"old"})
        entries = AuditEntry.objects.filter(subject__contains=f"(change {back.pk})").order_by("pk")
        self.assertEqual([each.subject.split()[0] for each in entries], ["Undid", "Stopped", "Resumed"])

    def test_a_running_change_without_a_job_is_queued_again(self):
        change = self.choose(make_document("one.md", category="old"))
        self.decide(change, "category", work=False, category="new")
        self.assertEqual(changes.queue_lost(), 0)
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM procrastinate_jobs")
        self.assertEqual(changes.queue_lost(), 1)

    def test_a_change_is_started_only_once(self):
        change = self.choose(make_document("one.md"))
        for _ in range(2):
            self.client.post(f"{CHANGES}{change.pk}/change/", prefixed("category", category="new"))
        self.assertEqual(ProcrastinateJob.objects.filter(task_name=changes.TASK).count(), 1)

    def test_the_first_step_sent_again_after_the_change_shows_its_result(self):
        change = self.choose(make_document("one.md", everyone=True))
        self.decide(change, "readers", how="set")
        page = f"{CHANGES}{change.pk}/change/"
        again = self.client.post(page, prefixed("readers", how="set"), follow=True)
        self.assertRedirects(again, page)
        self.assertContains(again, "This change was already started.")
        self.assertContains(again, "1 of 1")

    def test_a_document_that_cannot_have_more_labels_says_so(self):
        full = make_document("full.md", labels=[f"l{number}" for number in range(MAX_LABELS)])
        almost = make_document("almost.md", labels=[f"l{number}" for number in range(1, MAX_LABELS)])
        added = self.decide(self.choose(full, almost), "labels", how="add", labels="x, y")
        self.assertEqual(added, [("unchanged", changes.FULL), ("done", changes.FULL)])
        known = self.decide(self.choose(full), "labels", how="add", labels="l5")
        self.assertEqual(known, [("unchanged", "")])

    def test_old_changes_are_deleted(self):
        change = self.choose(make_document("one.md"))
        BulkChange.objects.update(created_at=timezone.now() - timedelta(days=31))
        kept = self.choose(make_document("two.md"))
        changes.delete_old()
        self.assertEqual(list(BulkChange.objects.all()), [kept])
        self.assertNotEqual(change, kept)

    def test_users_who_may_change_readers_select_people_by_name(self):
        make_user("guest", guest_until=timezone.now(), last_name="Bell")
        address = "/admin/autocomplete/?app_label=ingestion&model_name=accessentry&field_name=user&term=bell"
        self.client.force_login(self.clerk("change_document"))
        found = self.client.get(address).json()["results"]
        self.assertEqual([each["text"] for each in found], ["Bob Bell (bob)"])
        User.objects.filter(username="bob").update(email="captain@example.org")
        found = self.client.get(address.replace("bell", "captain")).json()["results"]
        self.assertEqual(found, [])
        self.client.force_login(self.clerk("view_document", name="other"))
        self.assertEqual(self.client.get(address).status_code, 403)

    def clerk(self, *rights, name="clerk"):
        clerk = User.objects.create(username=name, is_staff=True)
        clerk.user_permissions.set(Permission.objects.filter(codename__in=rights))
        return clerk
