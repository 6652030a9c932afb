"""Legal holds: what a person under one has said and written stays, also from their own hands."""

from django.core import exceptions as django_exceptions
from django.utils.translation import gettext, gettext_noop
from rest_framework import exceptions

from chatsite.accounts.models import User

ON_HOLD = gettext_noop(
    "Your account is under a legal hold: nothing of it can be deleted. Ask an administrator."
)


class OnHold(exceptions.PermissionDenied, django_exceptions.PermissionDenied):
    """A change that would destroy what a legal hold keeps; 403 in the portal and in the API."""

    def __init__(self) -> None:
        super().__init__(gettext(ON_HOLD))


def demand_no_hold(person_id: int) -> None:
    """Raise OnHold for a person under a legal hold. Call it before deleting or replacing what they wrote."""
    if User.objects.filter(pk=person_id).exclude(legal_hold="").exists():
        raise OnHold
