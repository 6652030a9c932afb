"""A base for tests that write files: each class gets a separate folder."""

import tempfile

from django.core.files.base import ContentFile
from django.db import connection
from django.test import Client, override_settings

from chatsite.accounts.principal import Principal
from ingestion import documents
from ingestion.access.lists import Audience
from ingestion.models import Document
from ingestion.storage import files

EVERYONE = Audience(everyone=True)


def forget_jobs():
    """Delete the jobs of earlier tests, whose table Django's flush does not know."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")


class ReadingClient(Client):
    """Reads each response to its end, as a browser does, because an unread one keeps its file open."""

    def request(self, **request):
        response = super().request(**request)
        if response.streaming and not response.is_async:
            response.streaming_content = [response.getvalue()]
        return response


class MediaMixin:
    """`self.add(...)` adds a document, and reads it unless told otherwise."""

    client_class = ReadingClient

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


def stored_bytes(document):
    """The content of a document's file."""
    with files.open_file(document) as file:
        return file.read()


def principal(user):
    return Principal(user.pk, "command")
