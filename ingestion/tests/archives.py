"""A base for tests with an archive, whose files are separate documents."""

from django.core.files.base import ContentFile
from procrastinate.contrib.django.models import ProcrastinateJob

from ingestion import documents
from ingestion.access.lists import Audience
from ingestion.models import Document
from ingestion.tests import building
from ingestion.tests.factories import make_user
from ingestion.tests.media import MediaMixin


class Archives(MediaMixin):
    """`put` adds or replaces board.zip; `read_all` reads waiting documents as a worker does."""

    def setUp(self):
        super().setUp()
        self.ann, self.eve = make_user("ann"), make_user("eve")

    def put(self, contents, name="board.zip", *, owner=None, audience=None, read=True, **more):
        data = contents if isinstance(contents, bytes) else building.package(contents)
        put = documents.upsert(
            ContentFile(data), name, owner=owner or self.ann, audience=audience or Audience(), **more
        )
        if read:
            documents.read_document(put.document.pk, put.replacement)
        return Document.objects.get(pk=put.document.pk)

    def read_all(self):
        while job := ProcrastinateJob.objects.filter(status="todo").order_by("-priority", "pk").first():
            documents.read_document(**job.args)
            ProcrastinateJob.objects.filter(pk=job.pk).delete()

    def parts(self, whole=None):
        found = Document.objects.exclude(part_of=None)
        return {part.part_path: part for part in (found.filter(part_of=whole) if whole else found)}
