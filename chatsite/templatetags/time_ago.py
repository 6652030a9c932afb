"""A template filter for how long ago something was, in words."""

from datetime import datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.timesince import timesince
from django.utils.translation import gettext

register = template.Library()


@register.filter
def time_ago(moment: datetime) -> str:
    """“just now” during the first minute, then “5 minutes ago” and so on.

    `timesince` would call the first minute “0 minutes”.
    """
    now = timezone.now()
    if now - moment < timedelta(minutes=1):
        return gettext("just now")
    return gettext("%(time)s ago") % {"time": timesince(moment, now)}
