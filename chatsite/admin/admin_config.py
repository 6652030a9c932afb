"""The admin as an installed app; its site needs the models, and is loaded after them."""

from django.contrib.admin.apps import AdminConfig


class SiteAdminConfig(AdminConfig):
    default_site = "chatsite.admin.admin_site.SiteAdmin"
