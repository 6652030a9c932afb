"""Documents: their pages, and their files."""

from django.urls import path

from . import changing, content, upload, views

app_name = "ingestion"
urlpatterns = [
    # Pages
    path("documents/", views.documents, name="documents"),
    path("documents/add/", upload.add, name="add"),
    path("documents/status/", views.status, name="status"),
    path("documents/<uuid:public_id>/", views.document, name="document"),
    path("documents/<uuid:public_id>/rights/", changing.rights, name="rights"),
    path("documents/<uuid:public_id>/again/", changing.again, name="again"),
    path("documents/<uuid:public_id>/delete/", changing.delete, name="delete"),
    # Content
    path("content/<path:sourcefile>/pages/<int:page>.png", content.PageImage.as_view(), name="page-image"),
    path("content/<path:sourcefile>", content.DocumentFile.as_view(), name="content"),
]
