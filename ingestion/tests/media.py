"""Tests that write files: each class gets a folder of its own for them."""

import tempfile

from django.core.files.base import ContentFile
from django.test import override_settings

from chatsite.accounts.principal import Principal
from ingestion import documents
from ingestion.access.lists import Audience
from ingestion.models import Document

EVERYONE = Audience(everyone=True)


class MediaMixin:
    """`self.add(...)` adds a document, and reads it unless told otherwise."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        settings = override_settings(MEDIA_ROOT=folder.name)
        settings.enable()
        self.addCleanup(settings.disable)
        self.media = folder.name

    def add(
        self,
        name="guide.md",
        data="# Leave\n\nFive days.",
        *,
        owner=None,
        audience=EVERYONE,
        read=True,
        **more,
    ):
        data = data if isinstance(data, bytes) else data.encode()
        added = documents.upsert(ContentFile(data), name, owner=owner, audience=audience, **more)
        document = added.document
        if read:
            documents.read_document(document.pk)
        return Document.objects.get(pk=document.pk)


def principal(user):
    return Principal(user.pk, "command")
