"""Legal holds: nobody can delete what a person under a legal hold has written or added."""

from django.core import exceptions as django_exceptions
from django.utils.translation import gettext, gettext_noop
from rest_framework import exceptions

from .models import User

ON_HOLD = gettext_noop(
    "Your account is under a legal hold, so nothing in it can be deleted. Ask an administrator."
)
DOCUMENT_ON_HOLD = gettext_noop(
    "Its owner is under a legal hold. Until that ends, the document cannot be deleted, replaced or handed on."
)
CONVERSATION_ON_HOLD = gettext_noop(
    "Its owner is under a legal hold. Until that ends, the conversation cannot be deleted."
)


class OnHold(exceptions.PermissionDenied, django_exceptions.PermissionDenied):
    """A change that would destroy what a legal hold keeps; 403 in the portal and in the API."""

    def __init__(self, reason: str = ON_HOLD) -> None:
        super().__init__(gettext(reason))


def demand_no_hold(person_id: int) -> None:
    """Raise OnHold for a person under a legal hold.

    Call it before deleting or replacing what they wrote.
    """
    if is_on_hold(person_id):
        raise OnHold


def is_on_hold(*people: int | None) -> bool:
    """Whether one of these people is under a legal hold."""
    return User.objects.filter(pk__in={each for each in people if each}).exclude(legal_hold="").exists()
