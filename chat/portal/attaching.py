"""Attaches files to a question: adds them as private documents, and makes them its scope.

Without JavaScript, *Send* also posts here: selected files are attached before the question is asked.
"""

from itertools import count
from typing import Any
from uuid import UUID

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from chat.requests import MAX_SCOPE_DOCUMENTS
from chatsite.accounts.page_decorators import signed_in
from chatsite.accounts.principal import Principal
from history.models import Conversation, Project
from ingestion import attachment_folder
from ingestion.document_identity import sha256_of
from ingestion.file_names import NAME_CHARACTERS, UploadRefused, decode_sent_name, file_name
from ingestion.models import Document
from ingestion.portal.forms import ONLY_ME, UploadForm
from ingestion.portal.upload import add_files, reply, status_of
from ingestion.search.scopes import DOCUMENT

from .conversation_actions import ask_form
from .project_pages import open_project, question_page
from .views import own_conversation, scope_asked_for, scopes, typed


@require_POST
@signed_in
def attach(
    request: HttpRequest,
    principal: Principal,
    conversation_id: UUID | None = None,
    project_id: UUID | None = None,
) -> HttpResponse:
    """Add the form's files and show the question with them as its scope; with `send`, ask it.

    The JSON response is that of an upload (`reply`), with the new `scope`: its value and its name.
    """
    row: Conversation | Project | None = None
    if conversation_id:
        row = own_conversation(principal, conversation_id)
    elif project_id:
        row = open_project(principal, project_id)
    sends = "send" in request.POST
    if sends and not request.FILES:
        return _ask(request, principal, row)
    scope = scope_asked_for(request.POST) or (row.scope if row else "")
    kind, _, ids = scope.partition(":")
    attached = ids.split(",") if kind == DOCUMENT else []
    folder = attachment_folder.of_day(timezone.localdate())
    form = UploadForm({"who": ONLY_ME, "folder": folder}, request.FILES, principal=principal, any_group=False)
    if len(attached) + len(request.FILES.getlist("file")) > MAX_SCOPE_DOCUMENTS:
        form.add_error(
            None, gettext("At most %(number)s documents can be attached.") % {"number": MAX_SCOPE_DOCUMENTS}
        )
    if form.is_valid():
        for file in form.cleaned_data["file"]:
            file.name = _name_apart(principal, folder, decode_sent_name(file.name), file)
        added, refused = add_files(form, principal)
    else:
        added, refused = [], []
    if added:
        ids = ",".join(dict.fromkeys([*attached, *(str(put.document.public_id) for put in added)]))
        scope = f"{DOCUMENT}:{ids}"
    answer = reply(form, principal, added, refused)
    status = 201 if added and not refused else status_of(refused)
    if request.headers.get("Accept", "").startswith("application/json"):
        chosen = scopes(principal, scope)
        answer["scope"] = {"value": chosen["scope"], "words": dict(chosen["scopes"])[chosen["scope"]]}
        return JsonResponse(answer, status=status)
    if sends and status == 201 and typed(request).strip():
        return _ask(request, principal, row, scope)
    problems = [*answer["problems"], *(f"{each['name']}: {each['message']}" for each in refused)]
    return question_page(
        request, principal, row, scope, problem=" ".join(problems), status=status if problems else 200
    )


def _ask(
    request: HttpRequest, principal: Principal, row: Conversation | Project | None, attached: str = ""
) -> HttpResponse:
    if isinstance(row, Project):
        return ask_form(request, principal, None, row, attached=attached)
    return ask_form(request, principal, row, attached=attached)


def _name_apart(principal: Principal, folder: str, name: str, file: "UploadedFile[Any]") -> str:
    """The name, numbered if another file attached today has it: answers may cite that file."""
    try:
        name = file_name(name)  # normalised as for storing, because it is compared with stored names
    except UploadRefused:
        return name  # `add_files` will refuse the name too, and report the reason
    known = dict(Document.objects.owned_by(principal).filter(folder=folder).values_list("name", "sha256"))
    if name not in known:
        return name
    digest = sha256_of(file)
    stem, dot, ending = name.rpartition(".")
    for number in count(1):
        mark, end = f" ({number})", f"{dot}{ending if stem else ''}"
        begins = (stem or ending)[: NAME_CHARACTERS - len(mark) - len(end)]
        candidate = name if number == 1 else f"{begins}{mark}{end}"
        if known.get(candidate, digest) == digest:
            return candidate
    raise AssertionError("count() has no end")
