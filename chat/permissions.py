"""Access to the steps behind an answer: for everyone, unless the operator requires a permission."""

from django.conf import settings

from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal

SEE_THOUGHTS = "chat.see_thoughts"


def may_see_thoughts(principal: Principal) -> bool:
    if not settings.THOUGHTS_RESTRICTED:
        return True
    user = User.objects.filter(pk=principal.user_id).first()
    return user is not None and user.has_perm(SEE_THOUGHTS)
