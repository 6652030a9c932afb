"""Changes after a link was created: of rights, documents, people, and the share itself."""

from datetime import timedelta

import pytest
from django.utils import timezone

from chat.tests.sharing_case import (
    SharingCase,
)
from history import recording, sharing
from history.models import Share
from ingestion import documents
from ingestion.access.lists import Audience, set_audience
from ingestion.models import Document, Passage


@pytest.mark.slow
class ChangesTests(SharingCase):
    """A change applies to an open page at the next request."""

    def test_withdrawn_and_new_rights_apply_at_once(self):
        set_audience(self.closed, Audience(everyone=True))
        self.share()
        self.assertIn("Port Ansel", self.page())
        self.assertIn("Port Ansel", self.page("source/1.1/"))
        set_audience(self.closed, Audience())
        self.assert_clean(self.page())
        self.assertEqual(self.client.get(self.url + "source/1.1/").status_code, 404)

    def test_statements_of_a_deleted_document_are_withheld(self):
        set_audience(self.closed, Audience(everyone=True))
        self.share()
        documents.delete_document(self.closed)
        self.assert_clean(self.page())

    def test_a_passage_that_a_newer_version_does_not_have_is_closed(self):
        set_audience(self.closed, Audience(everyone=True))
        self.share()
        Document.objects.filter(pk=self.closed.pk).update(version=2, title="Office plan")
        self.assertIn("Port Ansel", self.page(), "it still stands there")
        self.assertNotIn("Halyard plan", self.page())
        Passage.objects.filter(document=self.closed).update(content="Nothing is decided.")
        self.assert_clean(self.page())
        self.assertEqual(self.client.get(self.url + "source/1.1/").status_code, 404)

    def test_former_members_of_the_group_cannot_open_the_share(self):
        self.share()
        self.page()
        self.reader.groups.clear()
        self.assert_absent()

    def test_an_owner_who_is_disabled_or_deleted_shares_nothing(self):
        self.share()
        self.owner.is_active = False
        self.owner.save()
        self.assert_absent()
        self.owner.delete()
        self.assert_absent()

    def test_a_deleted_conversation_is_not_shared_until_it_is_restored(self):
        self.share()
        recording.delete(self.principal, self.conversation.pk)
        self.assert_absent()
        recording.restore(self.principal, self.conversation.pk)
        self.page()

    def test_a_share_ends_when_it_expires_or_is_revoked(self):
        self.share(expires_at=timezone.now() + timedelta(days=1))
        self.page()
        Share.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        self.assert_absent()
        self.share()
        sharing.revoke(self.principal, self.row.pk)
        self.assert_absent()

    def test_a_new_address_ends_the_old_one(self):
        old = self.share()
        _, token = sharing.renew(self.principal, self.row.pk)
        self.assert_absent(old)
        self.url = f"/s/{token}/"
        self.page()


@pytest.mark.slow
class ChangesOfOneAnswerTests(ChangesTests):
    """The same changes for a link to one answer."""

    def share(self, audience=None, **values):
        return super().share(audience, answer_id=self.answer.pk, **values)

    def test_a_reader_with_fewer_rights_sees_what_rests_on_open_documents(self):
        self.share()
        text = self.page()
        self.assertIn("announced at least eight weeks", text)
        self.assertIn("One statement is left out", text)
        self.assert_clean(text)
        self.assert_clean(self.page("export.md"))
