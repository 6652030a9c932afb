"""The worker's judgements of unanswered questions, without the questions' texts."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from history.models import Conversation, Message


class UnansweredQuestion(models.Model):
    """A question without a satisfactory answer; the row is deleted with the question.

    Its text is read from the message. Questions with the same `group_number` are similar; the numbers change
    each time questions are grouped.
    """

    message = models.OneToOneField(Message, primary_key=True, on_delete=models.CASCADE, related_name="+")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    asked_at = models.DateTimeField(db_index=True)
    reasons = ArrayField(
        models.CharField(max_length=10),
        help_text="Keys of unanswered_list.REASONS, or question_judging.SITUATION.",
    )
    digest = models.CharField(max_length=64, help_text="A keyed digest of its words.")
    group_number = models.PositiveIntegerField(
        null=True, help_text="Empty if there are more questions than can be grouped."
    )
    answers = ArrayField(models.UUIDField(), help_text="The messages that answer it.")
    shown = ArrayField(models.BigIntegerField(), help_text="Documents that the answers cite.")
    cited = ArrayField(
        models.BigIntegerField(),
        help_text="Documents that the conversation cites up to the next question; 0 for a document "
        "that was deleted.",
    )

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.message_id}"
