"""`/api/projects`: the caller's projects, and those that they are a member of."""

from typing import Any, ClassVar
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from chatsite.accounts.api.resource_views import ResourceView, id_of
from chatsite.accounts.api_keys import Scope
from chatsite.http.problem_details import ProblemDetails
from chatsite.http.strict_fields import StrictCharField, StrictSerializer
from history import projects
from history.api.pagination import ProjectPagination
from history.invalid import Invalid
from history.models import Project
from history.serializers.named_readers import (
    MembersSerializer,
    NamedReadersSerializer,
    audience_of_names,
    names_in,
)
from ingestion.api.search_views import ScopeField
from ingestion.search.scopes import ALL

PROJECT_ID = OpenApiParameter("project_id", UUID, OpenApiParameter.PATH, description="The id of a project.")
LINK = OpenApiParameter(
    "Link", str, OpenApiParameter.HEADER, response=[200], description="The address of the next page, if any."
)


class ProjectSerializer(serializers.Serializer[projects.ProjectRow]):
    """A project, and the number of the caller's conversations in it that are not archived."""

    id = serializers.UUIDField(source="project.pk")
    name = serializers.CharField(source="project.name")
    instructions = serializers.CharField(source="project.instructions", allow_blank=True)
    scope = serializers.SerializerMethodField(help_text="The scope of new conversations in it.")
    owner = serializers.CharField(
        source="project.owner.username", help_text="The user name of the person who can change it."
    )
    conversations = serializers.IntegerField()
    created_at = serializers.DateTimeField(source="project.created_at")
    updated_at = serializers.DateTimeField(source="project.updated_at")

    def get_scope(self, row: projects.ProjectRow) -> str:
        return row.project.scope or ALL


@extend_schema_field(
    {
        "type": "string",
        "minLength": 1,
        "maxLength": Project.MAX_NAME_CHARACTERS,
        "pattern": r"[^\s\x00\x1c-\x1f\x85]",
    }
)
class NameField(StrictCharField):
    """A name with visible characters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=Project.MAX_NAME_CHARACTERS, **options)


class ProjectChangeSerializer(StrictSerializer):
    """Changes to a project; missing members keep their values."""

    name = NameField(required=False)
    instructions = StrictCharField(
        max_length=Project.MAX_INSTRUCTIONS_CHARACTERS,
        allow_blank=True,
        required=False,
        help_text="Wishes for answers in the project, with less authority than the site's instructions.",
    )
    scope = ScopeField(required=False, help_text="The scope of new conversations in it.")

    def validate_scope(self, scope: str) -> str:
        return "" if scope == ALL else scope


class NewProjectSerializer(ProjectChangeSerializer):
    """A new project."""

    name = NameField()


class _View(ResourceView):
    required_scopes = (Scope.CHAT,)
    serializer_class: Any = ProjectSerializer
    not_found = (Project.DoesNotExist,)
    api_tag = "Projects"

    def own(self, project_id: str) -> Project:
        return projects.own(self.principal, id_of(project_id))

    def open(self, project_id: str) -> Project:
        return projects.opened(self.principal, id_of(project_id))

    def respond(self, project: Project, **options: Any) -> Response:
        (row,) = projects.counted(self.principal, [project])
        return Response(ProjectSerializer(row).data, **options)


class ProjectsView(_View):
    """Lists and creates projects."""

    pagination_class = ProjectPagination
    api_links: ClassVar = {
        "POST": {
            name: {"operationId": name, "parameters": {"project_id": "$response.body#/id"}}
            for name in ("project", "change_project", "delete_project")
        }
    }

    @extend_schema(
        summary="The caller's projects, and those that the caller is a member of, last used first",
        operation_id="list_projects",
        parameters=[
            OpenApiParameter("q", str, description="Words in the name of the project."),
            LINK,
        ],
        responses=ProjectSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        words = request.query_params.get("q", "").replace("\x00", " ")
        page: Any = self.paginate_queryset(projects.named(self.principal, words))
        return self.get_paginated_response(ProjectSerializer(page, many=True).data)

    @extend_schema(
        summary="Create a project",
        operation_id="create_project",
        request=NewProjectSerializer,
        responses={201: ProjectSerializer},
    )
    def post(self, request: Request) -> Response:
        asked = NewProjectSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        try:
            made = projects.create(self.principal, **asked.validated_data)
        except Invalid as problem:
            raise ProblemDetails(problem.message, problem.member) from None
        where = {"Location": f"/api/projects/{made.pk}"}
        return self.respond(made, status=status.HTTP_201_CREATED, headers=where)


class ProjectView(_View):
    """One project."""

    @extend_schema(summary="One project", operation_id="project", parameters=[PROJECT_ID])
    def get(self, request: Request, project_id: str) -> Response:
        return self.respond(self.open(project_id))

    @extend_schema(
        summary="Change a project; its existing conversations keep their scope",
        operation_id="change_project",
        parameters=[PROJECT_ID],
        request=ProjectChangeSerializer,
        responses=ProjectSerializer,
    )
    def patch(self, request: Request, project_id: str) -> Response:
        project = self.own(project_id)
        asked = ProjectChangeSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        values = {"name": project.name, "instructions": project.instructions, **asked.validated_data}
        try:
            projects.change(self.principal, project.pk, **values)
        except Invalid as problem:
            raise ProblemDetails(problem.message, problem.member) from None
        return self.respond(self.own(project_id))

    @extend_schema(
        summary="Delete a project and keep its conversations",
        operation_id="delete_project",
        parameters=[PROJECT_ID],
        responses={204: None},
    )
    def delete(self, request: Request, project_id: str) -> Response:
        projects.delete(self.principal, self.own(project_id).pk)
        return Response(status=status.HTTP_204_NO_CONTENT)


class MembersView(_View):
    """The members of a project, for its owner; also lets a member leave."""

    serializer_class = MembersSerializer

    @extend_schema(
        summary="The members of the caller's project, besides the caller",
        operation_id="project_members",
        parameters=[PROJECT_ID],
    )
    def get(self, request: Request, project_id: str) -> Response:
        return Response(MembersSerializer(names_in(projects.members_of(self.own(project_id)))).data)

    @extend_schema(
        summary="Set the members of the caller's project; applies from the next question",
        operation_id="set_project_members",
        parameters=[PROJECT_ID],
        request=NamedReadersSerializer,
        responses=MembersSerializer,
    )
    def put(self, request: Request, project_id: str) -> Response:
        project = self.own(project_id)
        asked = NamedReadersSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        members = audience_of_names(
            self.principal, **asked.validated_data, current=projects.members_of(project)
        )
        projects.set_members(self.principal, project.pk, members)
        return self.get(request, project_id)

    @extend_schema(
        summary="Leave somebody else's project; impossible for members through a group",
        operation_id="leave_project",
        parameters=[PROJECT_ID],
        responses={204: None},
    )
    def delete(self, request: Request, project_id: str) -> Response:
        project = self.open(project_id)
        if self.principal.user_id not in projects.members_of(project).user_ids:
            raise Http404
        projects.leave(self.principal, project.pk)
        return Response(status=status.HTTP_204_NO_CONTENT)
