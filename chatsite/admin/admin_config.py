"""The admin as an installed app.

Its site is named as a dotted path, because it imports the models, which are loaded later than this module.
"""

from django.contrib.admin.apps import AdminConfig


class SiteAdminConfig(AdminConfig):
    default_site = "chatsite.admin.admin_site.SiteAdmin"
