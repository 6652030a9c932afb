"""Documents with their readers, passages and vectors.

The rights of a document are stored only in its access list; documents with the same readers share one list.
A change of a document's rights therefore rewrites its row and those of its parts, but no passages.
"""

import uuid
from collections.abc import Collection
from datetime import timedelta
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import BooleanField, Exists, ExpressionWrapper, F, OuterRef, Q, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import MD5, Lower
from django.db.models.lookups import Exact
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy
from pgvector.django import HalfVectorField

from chatsite.accounts.principal import Principal

from .access.models import AccessEntry, AccessList
from .attachment_folder import as_shown, origin
from .bulk.models import BulkChange, BulkItem  # noqa: F401 (tables of this app)
from .details import is_web_address
from .glossary.models import HouseWord  # noqa: F401 (a table of this app)

EXPIRY_REMINDER = timedelta(days=30)
MAX_REASON = 1_000  # characters; a reason that is cut cannot be translated
MAX_WORDS = 10  # words of a search by name; the rest is ignored
WITH_PARTS = """
    WITH RECURSIVE found (id) AS (
        SELECT unnest(%s::bigint[])
        UNION
        SELECT part.id FROM ingestion_document AS part JOIN found ON part.part_of_id = found.id
    )
    SELECT id FROM found
"""


class DocumentQuerySet(models.QuerySet["Document"]):
    def visible_to(self, principal: Principal) -> "DocumentQuerySet":
        """Documents that the caller may read, by the same rule as row-level security and search."""
        return self.filter(access_list__in=AccessEntry.lists_of(principal.user_id))

    def with_privacy(self, reader_id: int) -> "DocumentQuerySet":
        """Annotate whether each document is private for this reader (see `is_private`).

        A document is private if it belongs to another person, only named people may read it, and the reader
        is not one of them. Its name may be private, like that of a file attached to a question. Staff see the
        name only if they may read the document, or on the document's page; each view of that page is then
        recorded in the audit log.
        """
        entries = AccessEntry.objects.filter(access_list=OuterRef("access_list"))
        of_others = Q(owner__isnull=False) & ~Q(owner=reader_id)
        only_named = Exists(entries.filter(user__isnull=False)) & ~Exists(entries.filter(user=None))
        unread = ~Q(access_list__in=AccessEntry.lists_of(reader_id))
        private = ExpressionWrapper(of_others & only_named & unread, BooleanField())
        return self.annotate(of_named_people=private)

    def without_private(self, reader_id: int) -> "DocumentQuerySet":
        """The documents that `with_privacy` does not mark as private."""
        return self.with_privacy(reader_id).filter(Q(of_named_people=False))

    def with_public_id(self, public_id: uuid.UUID) -> "DocumentQuerySet":
        """The document with this public id, or into which a duplicate with this id was merged."""
        merged = FormerId.objects.filter(public_id=public_id).values("document")
        return self.filter(Q(public_id=public_id) | Q(pk__in=merged))

    def public_ids_among(self, public_ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
        """The given ids that are the current or a former id of one of these documents."""
        former = FormerId.objects.filter(public_id__in=public_ids, document__in=self)
        present = self.filter(public_id__in=public_ids).values_list("public_id", flat=True)
        return {*present, *former.values_list("public_id", flat=True)}

    def searchable(self) -> "DocumentQuerySet":
        """Documents that have been read at least once and have not expired.

        A document that is being read again remains searchable.
        """
        return self.filter(Q(valid_until=None) | Q(valid_until__gte=timezone.localdate()), version__gt=0)

    def owned_by(self, principal: Principal) -> "DocumentQuerySet":
        return self.filter(owner_id=principal.user_id)

    def with_parts(self) -> "DocumentQuerySet":
        """These documents and all their parts, at any depth; the parts have the same readers."""
        whole = list(self.order_by().values_list("pk", flat=True))
        return Document.objects.filter(pk__in=RawSQL(WITH_PARTS, [whole]))  # noqa: S611 (constant text)

    def with_words(self, text: str) -> "DocumentQuerySet":
        """Documents with each of the first MAX_WORDS words of the text in name, title or folder."""
        found = self
        for word in list(dict.fromkeys(text.split()))[:MAX_WORDS]:
            found = found.filter(
                Q(name__icontains=word) | Q(title__icontains=word) | Q(folder__icontains=word)
            )
        return found


class Document(models.Model):
    """A file that a person or program added, and the state of its reading."""

    class Status(models.TextChoices):
        WAITING = "waiting", gettext_lazy("Waiting")
        READING = "reading", gettext_lazy("Reading")
        INDEXING = "indexing", gettext_lazy("Indexing")
        READY = "ready", gettext_lazy("Ready")
        FAILED = "failed", gettext_lazy("Failed")

    UNFINISHED: ClassVar = (Status.WAITING, Status.READING, Status.INDEXING)

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="documents"
    )
    origin = models.CharField(  # noqa: DJ001 (null: the unique constraint does not apply)
        max_length=30,
        null=True,
        editable=False,
        help_text=gettext_lazy(
            "Namespace of folder and name: user:<id> or shared; null if a SourceFile identifies it."
        ),
    )
    part_of = models.ForeignKey(
        "self",
        null=True,
        editable=False,
        on_delete=models.CASCADE,
        related_name="parts",
        db_index=False,  # the unique constraint has an index
        help_text=gettext_lazy(
            "The archive or message that it is in; a trigger keeps its owner, readers, category, labels and"
            " last day the same."
        ),
    )
    part_path = models.CharField(
        max_length=1000,
        editable=False,
        default="",
        db_default="",
        help_text=gettext_lazy("Path in the archive or message, which identifies the part."),
    )
    left_out = models.JSONField(
        default=list,
        db_default=Value([], models.JSONField()),
        editable=False,
        help_text=gettext_lazy("Files in it that did not become documents, as [path, reason]."),
    )
    access_list = models.ForeignKey(AccessList, on_delete=models.PROTECT, related_name="documents")
    audience_version = models.PositiveIntegerField(
        default=0,
        editable=False,
        help_text=gettext_lazy("The number of requested changes of the access list."),
    )
    folder = models.CharField(
        max_length=500, blank=True, help_text=gettext_lazy("Path of the folder, without slashes at the ends.")
    )
    name = models.CharField(max_length=255, help_text=gettext_lazy("The original name of the file."))
    # Stored as a column, because row-level security prevents the use of an index on an expression.
    folded_name = models.GeneratedField(
        expression=Lower("name"),
        output_field=models.TextField(),
        db_persist=True,
        help_text=gettext_lazy("For finding names regardless of letter case."),
    )
    title = models.CharField(max_length=500, blank=True)
    given_title = models.CharField(
        max_length=500,
        blank=True,
        default="",
        db_default="",
        help_text=gettext_lazy("Replaces the title in the file itself."),
    )
    category = models.CharField(max_length=100, blank=True, db_index=True)
    labels = ArrayField(models.CharField(max_length=50), default=list, db_default=[], blank=True)
    source_url = models.CharField(
        max_length=2000,
        blank=True,
        default="",
        db_default="",
        validators=[is_web_address],
        help_text=gettext_lazy("Where the document comes from: an http or https address."),
    )
    valid_until = models.DateField(
        null=True,
        blank=True,
        help_text=gettext_lazy(
            "After this day it is neither found nor cited. Without a day it remains valid."
        ),
    )
    language = models.CharField(
        max_length=20, blank=True, help_text=gettext_lazy("Text-search configuration of PostgreSQL.")
    )

    questions = models.JSONField(
        default=list,
        db_default=Value([], models.JSONField()),
        blank=True,
        editable=False,
        help_text=gettext_lazy(
            "Questions that the document answers, to begin a conversation with; each is tried before "
            "it is shown."
        ),
    )

    file = models.FileField(max_length=200, help_text=gettext_lazy("Stored under a generated name."))
    media_type = models.CharField(max_length=100)
    size = models.BigIntegerField(help_text=gettext_lazy("Bytes."))
    sha256 = models.CharField(max_length=64, editable=False)

    version = models.PositiveIntegerField(
        default=0,
        editable=False,
        help_text=gettext_lazy("The version of the passages in use; 0 until the file has been read once."),
    )
    versions = models.JSONField(
        default=list,
        db_default=Value([], models.JSONField()),
        blank=True,
        editable=False,
        help_text=gettext_lazy(
            "The versions that were read, with their times, newest last; only the newest file is kept."
        ),
    )
    page_count = models.PositiveIntegerField(null=True, editable=False)
    passage_count = models.PositiveIntegerField(
        default=0,
        editable=False,
        help_text=gettext_lazy("Search chooses its plan by the number of passages that the caller may read."),
    )
    status = models.CharField(max_length=10, choices=Status, default=Status.WAITING, db_index=True)
    reason = models.CharField(
        max_length=MAX_REASON, blank=True, help_text=gettext_lazy("Why it failed, as a sentence for people.")
    )
    queue_position = models.PositiveIntegerField(
        default=0,
        editable=False,
        help_text=gettext_lazy("Order of its waiting job (see ingestion.queue.fair_queue)."),
    )
    progress_done = models.PositiveIntegerField(default=0, editable=False)
    progress_total = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    objects = DocumentQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            # On digests, because long names may exceed the size of an index row.
            models.UniqueConstraint(F("origin"), MD5("folder"), MD5("name"), name="document_identity"),
            models.UniqueConstraint(
                F("part_of"), MD5("part_path"), name="document_part", condition=Q(part_of__isnull=False)
            ),
        ]
        indexes = [
            models.Index(fields=["access_list", "id"]),
            models.Index(fields=["name"]),
            models.Index(fields=["folded_name"], name="document_folded_name"),
            models.Index(fields=["language"], name="document_language"),
            models.Index(
                name="document_queue",
                fields=["owner", "queue_position"],
                condition=Q(status__in=("waiting", "reading", "indexing")),
            ),
        ]

    def __str__(self) -> str:
        if self.is_private:
            return gettext("Private document %(number)s") % {"number": self.pk}
        return self.title or self.name

    @property
    def is_private(self) -> bool:
        """Whether the name must not be shown; false for rows that are not from `with_privacy`."""
        return bool(self.__dict__.get("of_named_people"))

    @property
    def is_for_named_people(self) -> bool:
        """Whether it has an owner, and neither everyone nor any group may read it."""
        entries = AccessEntry.objects.filter(access_list=self.access_list_id)
        return self.owner_id is not None and not entries.filter(user=None).exists()

    @property
    def name_for_audit(self) -> str:
        """The name (or the primary key, if the name may be private), followed by the public id.

        The audit log is also read by staff without the right to read the document.
        """
        name = f"Private document {self.pk}" if self.is_for_named_people else self.name
        return f"{name} ({self.public_id})"

    @property
    def shown_folder(self) -> str:
        """The folder, as shown in the reader's language."""
        return as_shown(self.folder)

    @property
    def shown_origin(self) -> str:
        """The folder, or a text for a file that was attached to a question."""
        return origin(self.folder)

    @property
    def is_expired(self) -> bool:
        return self.valid_until is not None and self.valid_until < timezone.localdate()

    @property
    def is_expiring(self) -> bool:
        """Whether the last day is past or near, so that the owner should be reminded."""
        return self.valid_until is not None and self.valid_until <= timezone.localdate() + EXPIRY_REMINDER


class FormerId(models.Model):
    """The public id of a duplicate that was merged into another document.

    URLs that contain it still work.
    """

    public_id = models.UUIDField(primary_key=True)
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="former_ids")

    def __str__(self) -> str:
        return f"{self.public_id}"


class ExternalId(models.Model):
    """A program's own id for a document; each account has its own ids."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    external_id = models.CharField(max_length=200)
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="external_ids")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "external_id"], name="external_id_of_owner")]

    def __str__(self) -> str:
        return self.external_id


class FormerVersion(models.Model):
    """The text of a document before its file was replaced.

    It is kept for a while to show what changed. Its own row-level security makes it visible to people who may
    read the document now and are in the access list that the document had when the text was replaced.
    """

    document = models.ForeignKey(
        Document,
        on_delete=models.CASCADE,
        related_name="former_versions",
        # The migration adds a constraint with ON DELETE CASCADE, for versions of the software that do not
        # know this table.
        db_constraint=False,
        db_index=False,
    )
    access_list = models.ForeignKey(AccessList, on_delete=models.PROTECT, related_name="+", db_index=False)
    since = models.PositiveIntegerField(help_text="The first version of the document with this file.")
    version = models.PositiveIntegerField(help_text="The last version of the document with this file.")
    content = models.TextField()
    size = models.PositiveIntegerField(help_text="The size of the text in bytes.")
    replaced_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        ordering = ["-version"]
        constraints = [
            models.UniqueConstraint(name="former_version_once", fields=["document", "version"]),
        ]
        default_permissions: ClassVar[list[str]] = []

    def __str__(self) -> str:
        return f"{self.document_id}, version {self.version}"


class SourceFile(models.Model):
    """A document that mirrors a file of a synchronised folder (see ingestion.sources)."""

    document = models.OneToOneField(
        Document, on_delete=models.CASCADE, primary_key=True, related_name="source_file"
    )
    source = models.CharField(max_length=500, help_text="The name of the mirrored folder.")
    path = models.CharField(max_length=1000, help_text="The path of the file below the folder.")
    size = models.BigIntegerField(help_text="The size in bytes when the file was last checked.")
    modified_ns = models.BigIntegerField(
        help_text="The modification time when the file was last checked; 0 if uncertain."
    )
    sha256 = models.CharField(max_length=64, help_text="The SHA-256 of the contents that were last added.")

    class Meta:
        constraints = [models.UniqueConstraint(name="source_file_path", fields=["source", "path"])]

    def __str__(self) -> str:
        return self.path


class CitedName(models.Model):
    """A name under which a document was cited to a reader.

    For this reader, the name means that document from then on. The document is not a foreign key: after it is
    deleted, the name finds nothing, rather than another document with that name.
    """

    reader = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )  # the unique constraint has an index
    name = models.UUIDField(
        help_text="The MD5 of the name, so that the name itself is not kept longer than its document."
    )
    document = models.UUIDField(help_text="Its public id.")

    class Meta:
        constraints = [
            models.UniqueConstraint(name="cited_name_unique", fields=["reader", "name", "document"])
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.document}"


class Passage(models.Model):
    """A citable piece of a document: a few sentences of one page, slide, sheet or section."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="passages")
    position = models.PositiveIntegerField(help_text="Order in the document, from 0.")
    anchor = models.CharField(
        max_length=200, blank=True, help_text="The part after # in a citation: page=3, sheet=2025, leave."
    )
    page = models.PositiveIntegerField(null=True, help_text="The page or slide, from 1, if there is one.")
    heading = models.CharField(max_length=300, blank=True)
    content = models.TextField()

    class Meta:
        ordering = ["document", "position"]
        constraints = [
            models.UniqueConstraint(
                name="passage_position",
                fields=["document", "position"],
                deferrable=models.Deferrable.DEFERRED,
            )
        ]

    def __str__(self) -> str:
        return f"{self.document_id}:{self.position}"


class PassageWords(models.Model):
    """The words of a passage, in a separate narrow table, so that ranking reads little from disk.

    It has no row-level security, which would prevent the use of the word index.
    """

    passage = models.OneToOneField(Passage, primary_key=True, on_delete=models.CASCADE, related_name="+")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="+")
    search = SearchVectorField(editable=False)

    class Meta:
        indexes = [
            GinIndex(fields=["search"], name="passage_words_search"),
            # A sample of the rows, in which sql/survey.sql counts uncommon words.
            GinIndex(
                fields=["search"], name="passage_words_sample", condition=Q(Exact(F("passage_id") % 17, 0))
            ),
        ]

    def __str__(self) -> str:
        return f"{self.passage_id}"


class EmbeddingSpace(models.Model):
    """One embedding model; vectors of different spaces are never compared."""

    name = models.CharField(max_length=200, help_text="Name of the model.")
    dimensions = models.PositiveIntegerField()
    active = models.BooleanField(default=False, help_text="Whether search uses this space.")

    class Meta:
        constraints = [
            models.UniqueConstraint(name="embedding_space_unique", fields=["name", "dimensions"]),
            models.UniqueConstraint(
                name="embedding_space_one_active", fields=["active"], condition=Q(active=True)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.dimensions})"


class Vector(models.Model):
    """The embedding of one piece (about 250 characters) of a passage.

    Rows are small, so that scans are cheap.
    """

    space = models.ForeignKey(EmbeddingSpace, on_delete=models.CASCADE, related_name="+", db_index=False)
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="+", db_index=False)
    passage = models.ForeignKey(Passage, on_delete=models.CASCADE, related_name="+", db_index=True)
    vector = HalfVectorField()  # has as many dimensions as the space; the index casts to that number
    digest = models.BigIntegerField(
        null=True, help_text="The digest of the text, by which the vector is found if the text is read again."
    )

    class Meta:
        indexes = [models.Index(fields=["document", "space"], name="vector_document_space")]

    def __str__(self) -> str:
        return f"{self.passage_id}"


class PreparedVector(models.Model):
    """A vector of a document that is being read, kept until its passages are replaced.

    If reading is interrupted, for example because a worker dies, texts are thus not embedded twice. The table
    is unlogged.
    """

    space = models.ForeignKey(EmbeddingSpace, on_delete=models.CASCADE, related_name="+", db_index=False)
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="+", db_index=False)
    digest = models.BigIntegerField(help_text="The digest of the text.")
    vector = HalfVectorField()

    class Meta:
        indexes = [models.Index(fields=["document", "space"], name="prepared_document_space")]

    def __str__(self) -> str:
        return f"{self.document_id}:{self.digest}"
