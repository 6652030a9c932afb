"""The admin as an installed app.

The admin site is given as a dotted path, because its module imports models, which are loaded after this
module.
"""

from django.contrib.admin.apps import AdminConfig


class SiteAdminConfig(AdminConfig):
    default_site = "chatsite.admin.admin_site.SiteAdmin"
