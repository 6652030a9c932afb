"""The URLs of documents: pages, API, and files."""

from django.urls import path, re_path

from .api.batch import BatchView
from .api.contents import FileView, PageView, PassagesView, VersionsView
from .api.document_views import DocumentsView, DocumentView, SlashedDocumentView
from .api.search_views import SearchView
from .portal import (
    content,
    document_actions,
    several,
    upload,
    views,
)

ONE = r"(?P<document_id>[^/]+)"

app_name = "ingestion"
urlpatterns = [
    # Pages
    path("documents/", views.documents, name="documents"),
    path("documents/add/", upload.add, name="add"),
    path("documents/status/", views.status, name="status"),
    path("documents/several/", several.several, name="several"),
    path("documents/<uuid:public_id>/", views.document, name="document"),
    path("documents/<uuid:public_id>/changes/", views.changes, name="changes"),
    path("documents/<uuid:public_id>/rights/", document_actions.rights, name="rights"),
    path("documents/<uuid:public_id>/details/", document_actions.details, name="details"),
    path("documents/<uuid:public_id>/again/", document_actions.again, name="again"),
    path("documents/<uuid:public_id>/delete/", document_actions.delete, name="delete"),
    # REST API
    re_path(r"^api/documents/?\Z", DocumentsView.as_view(), name="api-documents"),
    re_path(r"^api/documents/batch/?\Z", BatchView.as_view(), name="api-batch"),
    re_path(rf"^api/documents/{ONE}/?\Z", DocumentView.as_view(), name="api-document"),
    re_path(rf"^api/documents/{ONE}/passages/?\Z", PassagesView.as_view(), name="api-passages"),
    re_path(rf"^api/documents/{ONE}/pages/(?P<number>[^/]+)/?\Z", PageView.as_view(), name="api-page"),
    re_path(rf"^api/documents/{ONE}/versions/?\Z", VersionsView.as_view(), name="api-versions"),
    re_path(rf"^api/documents/{ONE}/file/?\Z", FileView.as_view(), name="api-file"),
    re_path(r"^api/documents/(?P<slashed>[^/]+/.+)\Z", SlashedDocumentView.as_view(), name="api-slashed"),
    re_path(r"^api/search/?\Z", SearchView.as_view(), name="search"),
    # Files
    path("content/<path:sourcefile>/pages/<int:page>.png", content.PageImage.as_view(), name="page-image"),
    path("content/<path:sourcefile>", content.DocumentFile.as_view(), name="content"),
]
