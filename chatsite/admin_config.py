"""The admin as an installed app; its site needs the models, and is loaded after them."""

from django.contrib.admin.apps import AdminConfig


class BackOfficeConfig(AdminConfig):
    default_site = "chatsite.admin_site.BackOffice"
