from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy

from chatsite.http.cookies import use_linear_unquote

from .admin.model_names import translate_names
from .checks import (
    Tags,
    check_address_settings,
    check_answer_settings,
    check_audit,
    check_database_role,
    check_database_settings,
    check_dictionary,
    check_identity_settings,
    check_model_settings,
    check_names,
    check_reading_settings,
    check_secrets,
    check_storage_settings,
    check_telemetry,
)


class ChatsiteConfig(AppConfig):
    name = "chatsite"
    verbose_name = gettext_lazy("Site")

    def ready(self) -> None:
        use_linear_unquote()
        translate_names()
        checks.register(check_model_settings, Tags.chatsite)
        checks.register(check_identity_settings, Tags.chatsite)
        checks.register(check_storage_settings, Tags.chatsite)
        checks.register(check_address_settings, Tags.chatsite)
        checks.register(check_answer_settings, Tags.chatsite)
        checks.register(check_dictionary, Tags.chatsite)
        checks.register(check_reading_settings, Tags.chatsite)
        checks.register(check_secrets, Tags.chatsite)
        checks.register(check_names, Tags.chatsite)
        checks.register(check_telemetry, Tags.chatsite)
        checks.register(check_audit, Tags.chatsite)
        checks.register(check_database_settings, Tags.chatsite)
        checks.register(check_database_role, checks.Tags.database)
