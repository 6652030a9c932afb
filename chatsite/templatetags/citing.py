"""Template tags for how many conversations and verified answers cite a document."""

from django import template
from django.db.models import Func, JSONField
from django.db.models.expressions import F
from django.utils import timezone

from chat.models import VerifiedAnswer
from history.models import Source
from ingestion.models import Document

register = template.Library()

MIN_COUNTED = 3  # a smaller number would reveal something about individuals to the document's owner
MAX_COUNTED = 1_000  # counting stops here


@register.simple_tag
def conversations_citing(document: Document) -> int:
    """The number of conversations with an answer that cites the document.

    At most MAX_COUNTED; 0 if there are fewer than MIN_COUNTED.
    """
    label = Func(F("label"), function="to_jsonb", output_field=JSONField())
    sources = Source.objects.filter(document=document, message__conversation__deleted_at=None)
    cited = sources.filter(message__citations__contains=label).order_by()
    number = cited.values("message__conversation").distinct()[:MAX_COUNTED].count()
    return number if number >= MIN_COUNTED else 0


@register.simple_tag
def verified_answers_citing(document: Document) -> int:
    """The number of verified answers that cite the document, are active, and have not expired.

    None of them is given after the document has been deleted.
    """
    answers = VerifiedAnswer.objects.filter(active=True, valid_until__gte=timezone.localdate())
    return answers.filter(citations__document=document).distinct().count()
