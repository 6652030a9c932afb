from django.apps import AppConfig
from django.utils.translation import gettext_lazy


class HistoryConfig(AppConfig):
    name = "history"
    verbose_name = gettext_lazy("Conversations and feedback")
