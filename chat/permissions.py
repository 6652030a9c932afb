"""Who may see the steps behind an answer: everyone, unless the operator ties them to a permission."""

from django.conf import settings

from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal

SEE_THOUGHTS = "chat.see_thoughts"


def may_see_thoughts(principal: Principal) -> bool:
    if not settings.THOUGHTS_RESTRICTED:
        return True
    user = User.objects.filter(pk=principal.user_id).first()
    return user is not None and user.has_perm(SEE_THOUGHTS)
