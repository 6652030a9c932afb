"""The page of the admin that explains access and searches as another person, and the audit log."""

from datetime import date
from unittest.mock import patch

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import DatabaseError, transaction
from django.test import TestCase, TransactionTestCase, override_settings

from chatsite.accounts.models import ApiKey, AuditEntry, Look, User
from ingestion.attachment_folder import of_day
from ingestion.models import Document
from ingestion.tests.factories import make_document, make_user

PAGE = "/admin/ingestion/document/access/"
LOG = "/admin/accounts/auditentry/"
WHY = "ticket 4711"
HOSTILE = "<script>alert(1)</script>"


class AccessPageTests(TestCase):
    def setUp(self):
        self.admin = User.objects.create_superuser("root")
        self.client.force_login(self.admin)
        self.ann = make_user("ann", groups=["HR"])
        self.bob = make_user("bob")
        self.pay = make_document("pay.md", ["Bands of pay start at 30,000."], groups=[Group.objects.get()])
        self.open = make_document("open.md", ["Pay comes on the last day."], everyone=True)

    def show(self, **fields):
        return self.client.post(PAGE, {"reason": WHY} | fields)

    def test_the_page_says_why_a_person_may_or_may_not_read_a_document(self):
        self.assertContains(
            self.show(person="ann", document="pay.md"), "ann is in HR, and HR may read it.", status_code=200
        )
        page = self.show(person="bob", document=str(self.pay.public_id))
        self.assertContains(page, "bob may not read pay.md.")
        self.assertContains(page, "Members of HR may read it, and bob is in none of these groups.")
        change = f'<a href="/admin/ingestion/document/{self.pay.pk}/change/">'
        self.assertContains(page, f"{change}Change who can read it</a>")
        looker = make_user("looker", is_staff=True)
        rights = Permission.objects.filter(codename__in=["view_as_others", "view_document"])
        looker.user_permissions.set(rights)
        self.client.force_login(looker)
        page = self.show(person="bob", document=str(self.pay.public_id))
        self.assertContains(page, f"{change}Open</a>")

    def test_a_person_is_shown_with_the_full_name_and_a_document_with_its_title(self):
        User.objects.filter(pk=self.bob.pk).update(first_name="Bob", last_name="Builder")
        Document.objects.filter(pk=self.pay.pk).update(title="Pay in bands")
        self.assertContains(
            self.show(person="bob builder", document="pay in Bands"), "bob may not read pay.md."
        )
        User.objects.filter(pk=self.ann.pk).update(first_name="Bob", last_name="Builder")
        self.assertContains(
            self.show(person="Bob Builder", document="pay.md"), "Several people have this name"
        )
        self.assertContains(self.show(person="Bob", document="pay.md"), "There is no account with this name.")

    def names(self, what, query):
        return self.client.get(f"{PAGE}{what}", {"q": query}).json()["found"]

    def test_suggestions_find_people_and_documents_by_letters_and_can_be_submitted_as_shown(self):
        User.objects.filter(pk=self.bob.pk).update(
            first_name="Bob (IT)", last_name="Builder", is_active=False
        )
        Document.objects.filter(pk=self.pay.pk).update(title="Pay (a) (b)", folder="hr (new)/x")
        self.assertEqual(self.names("people", "buil bo"), ["Bob IT Builder (bob)"])
        self.assertEqual(self.names("documents", "pay hr"), ["Pay (a) (b) (hr (new)/x/pay.md)"])
        page = self.show(person="Bob IT Builder (bob)", document="Pay (a) (b) (hr (new)/x/pay.md)")
        self.assertContains(page, "bob may not read")
        page = self.show(person="ann", document="Pay (hr (new)/x/pay.md)")
        self.assertContains(page, "There is no such document.")
        for query in ("", " ", "\0", "nothing at all"):
            self.assertEqual((self.names("people", query), self.names("documents", query)), ([], []))

    def test_a_part_of_a_title_is_refused_with_a_list_of_the_matching_documents(self):
        Document.objects.filter(pk=self.pay.pk).update(title="Bands of pay")
        page = self.show(person="bob", document="bands")
        self.assertContains(page, "There is no such document. Did you mean: Bands of pay (pay.md)?")
        self.assertContains(page, "Please correct 1 error.")
        clerk = User.objects.create(username="clerk", is_staff=True)
        clerk.user_permissions.set(Permission.objects.filter(codename="view_as_others"))
        self.client.force_login(clerk)
        page = self.show(person="bob", document="bands")
        self.assertContains(page, "There is no such document.")
        self.assertNotContains(page, "Bands of pay")

    def test_the_form_states_the_minimum_length_of_a_reason(self):
        self.assertContains(self.client.get(PAGE), "at least 10 characters")

    def test_staff_without_permission_to_list_documents_are_offered_those_that_they_may_read(self):
        clerk = User.objects.create(username="clerk", is_staff=True)
        clerk.user_permissions.set(Permission.objects.filter(codename="view_as_others"))
        self.client.force_login(clerk)
        found = self.names("documents", ".md")
        self.assertEqual([each.partition("(")[2] for each in found], ["open.md)"])
        clerk.user_permissions.clear()
        for what in ("people", "documents"):
            self.assertEqual(self.client.get(f"{PAGE}{what}?q=an").status_code, 403)

    def test_a_search_finds_only_what_the_chosen_person_would_find(self):
        make_document("secret.md", ["Pay of the board."], owner=self.admin)
        page = self.show(person="bob", question="When is pay?")
        self.assertContains(page, "open.md")
        for hidden in ("pay.md", "30,000", "secret.md", "the board"):
            self.assertNotContains(page, hidden)
        page = self.show(person="ann", question="When is pay?")
        self.assertContains(page, "30,000")
        self.assertNotContains(page, "the board")

    def test_a_search_leaves_out_attached_files_as_the_questions_of_the_person_do(self):
        make_document("offer.md", ["Pay offered elsewhere."], owner=self.bob, folder=of_day(date(2026, 5, 1)))
        page = self.show(person="bob", question="When is pay?")
        self.assertContains(page, "A question of <bdi>bob</bdi> searches 1 document.")
        self.assertNotContains(page, "offer")

    def test_a_disabled_account_finds_nothing(self):
        User.objects.filter(pk=self.ann.pk).update(is_active=False)
        page = self.show(person="ann", question="pay", document="open.md")
        self.assertContains(page, "Nothing.")
        self.assertContains(page, "is disabled")

    def test_each_use_is_logged_with_its_actor_person_and_subject(self):
        response = self.show(person="ann", document="pay.md", question="pay\nday")
        search, explained = AuditEntry.objects.all()
        self.assertEqual(
            (explained.action, explained.actor, explained.actor_id, explained.person, explained.person_id),
            ("explain_access", "root", self.admin.pk, "ann", self.ann.pk),
        )
        self.assertEqual((search.action, search.subject), ("search_as", f"pay\nday, because: {WHY}"))
        self.assertIn(str(self.pay.public_id), explained.subject)
        self.assertEqual(search.request_id, response.headers["X-Request-ID"])

    def test_searching_as_another_person_requires_a_reason_and_is_disclosed_to_that_person(self):
        for reason in ("", "because"):
            page = self.show(person="ann", question="pay", reason=reason)
            self.assertNotContains(page, "30,000")
        self.assertContains(self.show(person="ann", question="pay", reason=""), "Give a reason for searching")
        self.assertFalse(AuditEntry.objects.exists())
        self.assertContains(self.show(person="root", question="pay", reason=""), "open.md")
        self.assertContains(self.show(person="ann", document="pay.md", reason=""), "ann is in HR")
        self.assertFalse(Look.objects.exists())
        for question in ("pay", "day of pay"):
            self.assertContains(self.show(person="ann", question=question), "30,000")
        look = Look.objects.get()
        self.assertEqual((look.reader, look.person, look.searched), (self.admin, self.ann, True))
        self.assertEqual(look.reason, WHY)
        self.client.force_login(self.ann)
        told = "searched the documents with your rights."
        before = self.client.get("/settings/data/")
        self.assertContains(before, "Nothing is listed yet.")  # not “Nobody”, which would be untrue
        self.assertNotContains(before, told)
        with override_settings(LOOK_NOTICE_DAYS=0):
            page = self.client.get("/settings/data/")
        self.assertContains(page, told)
        self.assertContains(page, WHY)

    def test_a_question_too_long_for_the_audit_log_is_not_searched_for(self):
        page = self.show(person="bob", question="a " * 1_000 + "pay")
        self.assertContains(page, "at most 1480 characters")
        self.assertNotContains(page, "open.md")
        self.assertFalse(AuditEntry.objects.exists())

    def test_a_link_fills_in_the_form_and_shows_and_writes_nothing(self):
        page = self.client.get(f"{PAGE}?person=ann&document={self.pay.public_id}&question=pay")
        self.assertContains(page, 'value="ann"')
        self.assertContains(page, f'value="{self.pay.public_id}"')
        self.assertNotContains(page, "HR may read it")
        self.assertFalse(AuditEntry.objects.exists())

    def test_unknown_and_missing_values_are_reported_and_nothing_is_written(self):
        for fields, words in (
            ({"person": "nobody", "document": "pay.md"}, "There is no account with this name."),
            ({"person": "ann", "document": "nothing.md"}, "There is no such document."),
            ({"person": "ann"}, "Name a document, or ask a question."),
            ({"document": "pay.md"}, "This field is required."),
            ({"person": "a\0nn", "document": "pay.md"}, "Null characters are not allowed."),
        ):
            self.assertContains(self.show(**fields), words)
        self.assertFalse(AuditEntry.objects.exists())

    def test_the_page_requires_the_permission(self):
        staff = User.objects.create_user("staff", is_staff=True)
        self.client.force_login(staff)
        for method in (self.client.get, self.client.post):
            self.assertEqual(method(PAGE, {"person": "ann", "question": "pay"}).status_code, 403)
        staff.user_permissions.add(Permission.objects.get(codename="view_as_others"))
        self.assertContains(self.show(person="ann", question="pay"), "30,000")
        self.client.force_login(self.bob)
        self.assertEqual(self.client.get(PAGE).status_code, 302)

    @pytest.mark.slow
    def test_pages_of_the_admin_link_to_it(self):
        for path, link in (
            ("/admin/", PAGE),
            (f"/admin/ingestion/document/{self.pay.pk}/change/", f"{PAGE}?document={self.pay.public_id}"),
            (f"/admin/accounts/user/{self.ann.pk}/change/", f"{PAGE}?person=ann"),
        ):
            self.assertContains(self.client.get(path), f'href="{link}"')
        looker = User.objects.create_user("looker", is_staff=True)
        looker.user_permissions.add(Permission.objects.get(codename="view_document"))
        self.client.force_login(looker)
        for path in ("/admin/", f"/admin/ingestion/document/{self.pay.pk}/change/"):
            self.assertNotContains(self.client.get(path), PAGE)

    def test_html_in_names_texts_and_questions_is_shown_as_text(self):
        User.objects.filter(pk=self.ann.pk).update(username=HOSTILE)
        document = make_document("pay2.md", [f"Pay {HOSTILE} now."], title=HOSTILE, everyone=True)
        type(document).objects.filter(pk=document.pk).update(name=f"{HOSTILE}.md"[:50])
        page = self.show(person=HOSTILE, document=str(document.pk), question=f"pay {HOSTILE}")
        self.assertContains(page, "&lt;script&gt;")
        self.assertNotContains(page, HOSTILE)
        self.assertNotContains(self.client.get(LOG), HOSTILE)


class AuditLogTests(TestCase):
    def setUp(self):
        self.admin = User.objects.create_superuser("root")
        self.client.force_login(self.admin)
        self.entry = AuditEntry.objects.create(action="search_as", actor="root", person="ann", subject="pay")

    def test_the_log_can_be_browsed_but_not_changed(self):
        self.assertContains(self.client.get(f"{LOG}?action__exact=search_as&q=ann"), "1 audit entry")
        self.assertContains(self.client.get(f"{LOG}?action__exact=key_made"), "0 audit entries")
        page = self.client.get(f"{LOG}{self.entry.pk}/change/")
        self.assertContains(page, "pay")
        self.assertNotContains(page, 'name="_save"')
        for path in (f"{LOG}add/", f"{LOG}{self.entry.pk}/change/", f"{LOG}{self.entry.pk}/delete/"):
            self.assertEqual(self.client.post(path, {"post": "yes", "actor": "x"}).status_code, 403, path)
        self.client.post(
            LOG, {"action": "delete_selected", "_selected_action": [self.entry.pk], "post": "yes"}
        )
        self.assertEqual(AuditEntry.objects.get(pk=self.entry.pk).subject, "pay")
        self.assertTrue(AuditEntry.objects.filter(action="log_read", actor="root").exists())

    def test_the_list_says_who_reads_a_document_since_a_change_of_its_readers(self):
        long = f"{'a-long-name-of-a-document' * 3}.md ({self.entry.pk:036}): Crew, Deck → Crew, Deck, Port"
        AuditEntry.objects.create(action="rights_changed", actor="root", subject=long)
        self.assertContains(self.client.get(LOG), "Crew, Deck → Crew, Deck, Port")

    def test_viewing_the_log_is_logged_in_words_with_its_time(self):
        self.client.get(LOG, {"q": "ann & bob", "action__exact": "search_as"})
        look = AuditEntry.objects.get(action="log_read")
        self.assertEqual(look.subject, "q=ann & bob, action__exact=search_as")
        self.assertContains(self.client.get(f"{LOG}{look.pk}/change/"), "Created at")

    def test_the_database_itself_refuses_to_change_or_remove_an_entry(self):
        for change in (lambda rows: rows.update(actor="x"), lambda rows: rows.delete()):
            with self.assertRaises(DatabaseError), transaction.atomic():
                change(AuditEntry.objects.all())
        self.assertEqual(AuditEntry.objects.get().actor, "root")

    def test_entries_outlive_the_accounts_that_they_name(self):
        ann = make_user("ann")
        AuditEntry.objects.create(action="search_as", actor="root", person="ann", person_id=ann.pk)
        ann.delete()
        self.assertEqual(AuditEntry.objects.filter(person="ann").count(), 2)

    def test_the_log_requires_the_permission(self):
        staff = User.objects.create_user("staff", is_staff=True)
        self.client.force_login(staff)
        self.assertEqual(self.client.get(LOG).status_code, 403)
        staff.user_permissions.add(Permission.objects.get(codename="view_auditentry"))
        self.assertContains(self.client.get(LOG), "pay")

    def test_changes_of_rights_in_the_portal_are_logged_unless_the_owner_made_them(self):
        ann = make_user("ann")
        theirs = make_document("theirs.md", owner=ann, everyone=True)
        mine = make_document("mine.md", owner=self.admin, everyone=True)
        for document in (theirs, mine):
            answer = self.client.post(f"/documents/{document.public_id}/rights/", {"who": "me"})
            self.assertEqual(answer.status_code, 302)
        entry = AuditEntry.objects.get(action="rights_changed")
        self.assertEqual((entry.actor, entry.person), ("root", "ann"))
        self.assertTrue(entry.subject.startswith("theirs.md ("))
        self.assertTrue(entry.subject.endswith(": Everyone who signs in → ann"))

    def test_staff_who_change_the_readers_of_their_own_document_in_the_admin_are_logged(self):
        document = make_document("mine.md", owner=self.admin)
        self.client.post(f"/admin/ingestion/document/{document.pk}/change/", {"everyone": "on"})
        entry = AuditEntry.objects.get(action="rights_changed")
        self.assertEqual((entry.actor, entry.person), ("root", "root"))
        self.assertTrue(entry.subject.endswith(": root → Everyone who signs in"), entry.subject)

    def test_changed_rights_and_new_keys_are_logged(self):
        ann = make_user("ann")
        document = make_document(owner=ann)
        page = f"/admin/ingestion/document/{document.pk}/change/"
        self.client.post(page, {"everyone": "on"})
        self.client.post(page, {"everyone": "on", "category": "rules"})
        moved = AuditEntry.objects.first()
        self.assertEqual((moved.action, moved.actor, moved.person), ("document_changed", "root", "ann"))
        entry = AuditEntry.objects.get(action="rights_changed")
        self.assertEqual((entry.actor, entry.person), ("root", "ann"))
        self.assertTrue(entry.subject.endswith(": ann → Everyone who signs in"), entry.subject)
        self.client.post(
            "/admin/accounts/apikey/add/", {"user": ann.pk, "name": "nightly", "scopes": ["search"]}
        )
        entry = AuditEntry.objects.first()
        self.assertEqual((entry.action, entry.person), ("key_made", "ann"))
        self.assertIn(ApiKey.objects.get().prefix, entry.subject)


class OrderTests(TransactionTestCase):
    def test_the_entry_remains_if_the_search_then_fails(self):
        admin = User.objects.create_superuser("root")
        make_user("ann")
        self.client.force_login(admin)
        self.client.raise_request_exception = False
        with (
            patch("ingestion.access.admin.search", side_effect=RuntimeError),
            self.assertLogs("django.request", "ERROR"),
        ):
            response = self.client.post(PAGE, {"person": "ann", "question": "pay", "reason": WHY})
        self.assertEqual(response.status_code, 500)
        self.assertEqual(AuditEntry.objects.get().subject, f"pay, because: {WHY}")

    def test_without_an_audit_entry_there_is_no_search(self):
        self.client.force_login(User.objects.create_superuser("root"))
        make_user("ann")
        self.client.raise_request_exception = False
        with (
            patch("ingestion.access.admin.search") as search,
            patch("chatsite.accounts.staff_access.record", side_effect=DatabaseError),
            self.assertLogs("django.request", "ERROR"),
        ):
            self.client.post(PAGE, {"person": "ann", "question": "pay", "reason": WHY})
        search.assert_not_called()
