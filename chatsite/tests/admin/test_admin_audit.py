"""Every page of the admin that shows another's words or changes rights leaves an entry in the audit log."""

import pytest
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group
from django.test import RequestFactory, TestCase

from chat.models import Agent, MessageAllowance
from chat.tests.conversations import answered
from chatsite.accounts import staff_access
from chatsite.accounts.models import ApiKey, AuditEntry, ExternalIdentity, GroupMapping, User
from chatsite.tests.routes import routes
from history.models import Feedback, Share
from ingestion.access.lists import Audience, access_list_for
from ingestion.bulk import changes
from ingestion.bulk.models import BulkChange
from ingestion.models import Document
from ingestion.tests.factories import make_document, make_user

# What the pages of each model show of other people, or why its pages need no entry.
KINDS = {
    "accounts.apikey": "names of keys; every change is an entry",
    "accounts.auditentry": "words",
    "accounts.externalidentity": "subjects; every change is an entry",
    "accounts.groupmapping": "names of groups; every change is an entry",
    "accounts.webhookendpoint": "hosts, ids and states; switching one off is an entry",
    "accounts.user": "names; every change is an entry",
    "auth.group": "names of groups; every change is an entry",
    "chat.agent": "texts of the site; every change is an entry",
    "chat.messageallowance": "numbers; every change is an entry",
    "chat.proofquestion": "texts of the site, no wider than the manager's rights; every change is an entry",
    "chat.proofrun": "numbers; a look with the rights of others is an entry (test_evaluation)",
    "chat.retention": "numbers; every change is an entry (test_retention)",
    "chat.run": "times and numbers",
    "chat.sitetexts": "texts of the site; every change is an entry",
    "chat.startingquestion": "texts of the site; every change is an entry",
    "chat.verifiedanswer": "texts of the site, no wider than the manager's rights; every change is an entry",
    "history.conversation": "words",
    "history.feedback": "words",
    "history.share": "words",
    "ingestion.bulkchange": "names of documents; every change is an entry",
    "ingestion.houseword": "texts of the site, no wider than the manager's groups; every change is an entry",
    "ingestion.document": "names; the text on the page of one document is words",
    "procrastinate.procrastinatejob": "numbers",
}
# Pages that are not about a row.
OTHERS = {
    "index": "numbers, and titles that the manager may read",
    "figures": "the same",
    "status": "numbers",
    "login": "an entry for each that succeeds, and each refusal",
    "logout": "an entry",
    "password_change": "leads to the portal",
    "password_change_done": "a sentence",
    "autocomplete": "names, to pick one",
    "jsi18n": "the program's words",
    "view_on_site": "leads elsewhere",
    "app_list": "names of kinds",
    "accounts_user_export": "an entry (test_export_of_others)",
    "auth_user_password_change": "an entry (test_new_password)",
    "ingestion_document_access": "an entry (test_access_page)",
    "ingestion_document_access_names": "names, to pick one",
    "ingestion_document_add_several": "an entry for each file (test_add_several)",
    "chat_sitetexts_try": "an answer under the manager's own rights; keeping a draft is an entry",
    "chat_proofquestion_collect": "words whose askers agreed; what is added is an entry (test_evaluation)",
    "chat_proofquestion_file": "an entry (test_evaluation)",
    "chat_proofquestion_csv": "texts of the site, no wider than the manager's rights",
    "chat_proofrun_compare": "as one run",
    "ingestion_houseword_file": "an entry (test_glossary)",
    "ingestion_houseword_csv": "texts of the site, no wider than the manager's groups",
    "ingestion_houseword_built_in": "the program's words",
    "chat_verifiedanswer_try": "an entry (test_verified_admin)",
    "chat_verifiedanswer_wordings": "an entry (test_verified_admin)",
    "chat_verifiedanswer_unanswered": "an entry (test_unanswered_actions)",
}
ROW_PAGES = ("changelist", "add", "change", "delete", "history")


@pytest.mark.slow
class AdminAuditTests(TestCase):
    def setUp(self):
        self.root = User.objects.create_superuser("root")
        self.client.force_login(self.root)
        self.ann = make_user("ann", groups=["Crew"])
        self.crew = Group.objects.get(name="Crew")

    def entries(self, action=None):
        found = AuditEntry.objects.filter(actor="root")
        return list((found.filter(action=action) if action else found).order_by("pk"))

    def post(self, path, **values):
        response = self.client.post(path, values)
        self.assertEqual(response.status_code, 302, path)
        return self.entries()[-1]

    def test_every_page_is_known_here(self):
        kinds = {f"{model._meta.app_label}.{model._meta.model_name}" for model in admin.site._registry}
        self.assertEqual(kinds, set(KINDS))
        of_rows = {f"{kind.replace('.', '_')}_{page}" for kind in kinds for page in ROW_PAGES}
        names = {
            name.removeprefix("admin:")
            for name, pattern in routes()
            if name.startswith("admin:") and pattern.name
        }
        self.assertEqual(names - of_rows, set(OTHERS))

    def test_each_page_that_shows_text_of_others_is_logged(self):
        document = make_document("theirs.md", owner=self.ann)
        conversation, answer = answered(self.ann, document)
        feedback = Feedback.objects.create(message=answer, rating="bad", comment="No.")
        share = Share.objects.create(
            conversation=conversation,
            up_to=1,
            access_list=access_list_for(Audience(everyone=True), None),
            digest="d",
        )
        entry = AuditEntry.objects.create(action="search_as", actor="ann", subject="pay")
        rows = {
            "history/conversation": conversation,
            "history/feedback": feedback,
            "history/share": share,
            "accounts/auditentry": entry,
        }
        pages = [f"/admin/{path}/" for path in rows]
        pages += [f"/admin/{path}/{row.pk}/change/" for path, row in rows.items()]
        pages.append(f"/admin/ingestion/document/{document.pk}/change/")
        staff_access.begin(self.root, self.ann, conversation.pk, "ticket 4711")
        for page in pages:
            with self.subTest(page):
                before = len(self.entries())
                self.assertEqual(self.client.get(page).status_code, 200)
                self.assertEqual(len(self.entries()), before + 1)

    def test_another_spelling_of_an_id_is_logged_too(self):
        document = make_document("theirs.md", owner=self.ann)
        _, answer = answered(self.ann, document)
        feedback = Feedback.objects.create(message=answer, rating="bad", comment="No.")
        for path, number in (
            ("history/feedback", quote(feedback.pk.urn)),
            ("ingestion/document", quote(f"0_{document.pk}")),
        ):
            before = len(self.entries())
            response = self.client.get(f"/admin/{path}/{number}/change/")
            self.assertEqual(response.status_code, 200)
            self.assertEqual(len(self.entries()), before + 1, path)
            self.assertEqual(self.client.get(f"/admin/{path}/{number}9/change/").status_code, 404)

    def test_no_list_is_filtered_by_a_field_that_is_not_among_its_filters(self):
        staff = make_user("staff", is_staff=True)
        request = RequestFactory().get("/admin/")
        request.user = staff
        for model, page in admin.site._registry.items():
            listed = [each[0] if isinstance(each, tuple) else each for each in page.list_filter]
            filters = {getattr(each, "parameter_name", each) for each in listed}
            known = {*filters, page.date_hierarchy, *getattr(page, "linked_by", ())}
            for field in model._meta.fields:
                for comparison in ("icontains", "startswith", "isnull", "gt"):
                    if field.name not in known or comparison in {"icontains", "startswith"}:
                        lookup = f"{field.name}__{comparison}"
                        self.assertFalse(page.lookup_allowed(lookup, "x", request), f"{page} {lookup}")

    def test_viewing_a_document_with_the_right_to_read_is_not_logged(self):
        document = make_document("ours.md", owner=self.ann, everyone=True)
        self.client.get(f"/admin/ingestion/document/{document.pk}/change/")
        self.assertEqual(self.entries(), [])

    def test_changes_of_accounts_are_logged_with_the_resulting_rights(self):
        page = f"/admin/accounts/user/{self.ann.pk}/change/"
        form = self.client.get(page).context["adminform"].form
        values = {name: value for name, value in form.initial.items() if value not in (None, False)}
        values |= {"groups": [self.crew.pk], "is_staff": "on", "user_permissions": []}
        values |= {
            "date_joined_0": "2026-01-01",
            "date_joined_1": "00:00:00",
            "last_login_0": "",
            "last_login_1": "",
        }
        values.pop("last_login", None)
        entry = self.post(page, **values)
        self.assertEqual((entry.action, entry.person), ("account_changed", "ann"))
        self.assertTrue(entry.subject.endswith("now active, staff; in Crew"), entry.subject)

    def test_each_change_of_rights_is_logged(self):
        entry = self.post("/admin/auth/group/add/", name="Office")
        self.assertEqual(entry.action, "group_changed")
        self.assertIn("Added group Office", entry.subject)
        office = Group.objects.get(name="Office")
        self.assertIn("may", self.post(f"/admin/auth/group/{office.pk}/change/", name="Bureau").subject)
        self.assertIn("Deleted", self.post(f"/admin/auth/group/{office.pk}/delete/", post="yes").subject)
        mapping = {"issuer": "https://id", "value": "42", "group": self.crew.pk}
        self.assertEqual(self.post("/admin/accounts/groupmapping/add/", **mapping).action, "mapping_changed")
        path = f"/admin/accounts/groupmapping/{GroupMapping.objects.get().pk}/delete/"
        self.assertIn("Deleted", self.post(path, post="yes").subject)
        allowance = self.post("/admin/chat/messageallowance/add/", user=self.ann.pk, messages=5)
        self.assertEqual((allowance.action, allowance.person), ("allowance_changed", "ann"))
        path = f"/admin/chat/messageallowance/{MessageAllowance.objects.get().pk}/delete/"
        self.assertIn("Deleted", self.post(path, post="yes").subject)
        agent = Agent.objects.create(name="Clerk", description="Old", instructions="Be brief.")
        changed = {"name": agent.name, "description": "New", "instructions": "Be kind.", "order": 1}
        self.assertEqual(
            self.post(f"/admin/chat/agent/{agent.pk}/change/", **changed).action, "agent_changed"
        )

    def test_deletions_of_keys_identities_documents_and_conversations_are_logged(self):
        key, _ = ApiKey.objects.issue(self.ann, "nightly")
        entry = self.post(f"/admin/accounts/apikey/{key.pk}/change/", name="daily")
        renamed = f"Renamed API key {key.prefix}… (daily) (number {key.pk}), formerly “nightly”"
        self.assertEqual((entry.action, entry.person, entry.subject), ("account_changed", "ann", renamed))
        entry = self.post("/admin/accounts/apikey/", action="revoke", _selected_action=key.pk)
        self.assertEqual((entry.action, entry.person), ("keys_revoked", "ann"))
        other, _ = ApiKey.objects.issue(self.ann, "weekly")
        entry = self.post(f"/admin/accounts/apikey/{other.pk}/delete/", post="yes")
        self.assertEqual((entry.action, entry.person), ("keys_revoked", "ann"))
        identity = ExternalIdentity.objects.create(user=self.ann, issuer="https://id", subject="7")
        entry = self.post(f"/admin/accounts/externalidentity/{identity.pk}/delete/", post="yes")
        self.assertEqual((entry.action, entry.person), ("identity_removed", "ann"))
        document = make_document("theirs.md", owner=self.ann)
        conversation, _ = answered(self.ann, document, title="Private words")
        self.post(f"/admin/history/conversation/{conversation.pk}/delete/", post="yes")
        gone = self.entries("conversation_deleted")[0]
        self.assertEqual(gone.person, "ann")
        self.assertNotIn("Private", gone.subject)
        self.post("/admin/ingestion/document/", action="change_many", _selected_action=document.pk)
        change = BulkChange.objects.get()
        page = f"/admin/ingestion/bulkchange/{change.pk}/change/"
        self.post(page, kind="delete", confirmed="1")
        changes.work(change.pk)
        subjects = [entry.subject for entry in self.entries("document_changed")]
        self.assertIn("Delete of 1 documents at once", subjects[0])
        self.assertIn(f"Deleted Private document {document.pk} ", subjects[1])
        self.assertFalse(Document.objects.exists())


class SigningTests(TestCase):
    def setUp(self):
        self.ann = User.objects.create_user("ann", password="right-horse-1", is_staff=True)

    def actions(self):
        return list(AuditEntry.objects.order_by("pk").values_list("action", "actor"))

    def test_signing_in_and_out_is_logged(self):
        for path in ("/accounts/sign-in/", "/admin/login/"):
            fields = {"username": "ann", "password": "right-horse-1"}
            self.assertEqual(self.client.post(path, fields, REMOTE_ADDR="10.0.0.9").status_code, 302)
            self.assertIn("from 10.0.0.9", AuditEntry.objects.order_by("-pk")[0].subject)
            self.client.post("/accounts/sign-out/")
        self.assertEqual(self.actions(), [("sign_in", "ann"), ("sign_out", "ann")] * 2)
        self.client.post("/accounts/sign-out/")
        self.assertEqual(len(self.actions()), 4)

    def test_changes_of_ones_own_keys_and_passwords_are_logged(self):
        self.client.force_login(self.ann)
        self.client.post("/settings/keys/", {"name": "nightly", "days": "30", "scopes": ["search"]})
        self.client.post(f"/settings/keys/{ApiKey.objects.get().pk}/revoke/")
        new = {"new_password1": "another-horse-9", "new_password2": "another-horse-9"}
        self.client.post("/settings/password/", {"old_password": "right-horse-1"} | new)
        self.assertEqual(
            self.actions(), [(action, "ann") for action in ("key_made", "keys_revoked", "password_set")]
        )
