"""This app's admin pages. Django's autodiscovery imports this package."""

from chat.site_texts import admin as _texts  # noqa: F401

from . import agents_admin, documents_admin, evaluation_admin, persons_admin, verified_admin  # noqa: F401 (for their pages)
