"""The admin as an installed app. Its site needs the models, so it is loaded after them."""

from django.contrib.admin.apps import AdminConfig


class SiteAdminConfig(AdminConfig):
    default_site = "chatsite.admin.admin_site.SiteAdmin"
