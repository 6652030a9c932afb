"""No page of the admin shows more than 300 options, however many groups, people and categories there are."""

import re

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.test import TestCase
from django.urls import reverse

from chat.models import Agent, MessageAllowance, StartingQuestion
from chatsite.accounts.models import ApiKey, GroupMapping, User
from ingestion.access.lists import Audience, access_list_for
from ingestion.models import Document, HouseWord

MANY = 500
MAX_OPTIONS = 300
DOCUMENTS, USERS = "/admin/ingestion/document/", "/admin/accounts/user/"


def options(page):
    """The number of choices on a page: options, check boxes, buttons, and links of filters."""
    text = page.content.decode()
    filters = text.partition('id="changelist-filter"')[2].partition("</nav>")[0]
    return len(re.findall(r"<option|type=.(?:checkbox|radio)", text)) + filters.count("<li")


@pytest.mark.slow
class AdminWithManyTests(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.root = User.objects.create_superuser("root")
        names = [f"Group {number:03}" for number in range(MANY)]
        cls.groups = Group.objects.bulk_create([Group(name=name) for name in names])
        people = User.objects.bulk_create([User(username=f"person{number:03}") for number in range(MANY)])
        memberships = [(person, group) for person, group in zip(people, cls.groups, strict=True)]
        memberships += [(person, cls.groups[-1]) for person in people[:3]]
        joined = User.groups.through
        joined.objects.bulk_create([joined(user=person, group=group) for person, group in memberships])
        Document.objects.bulk_create(
            [
                Document(
                    name=f"{number}.md",
                    owner=person,
                    size=1,
                    folder=f"folder {number}",
                    category=f"category {number:03}",
                    labels=[f"label {number}"],
                    access_list=access_list_for(Audience(group_ids=frozenset({group.pk})), None),
                )
                for number, (person, group) in enumerate(memberships)
            ]
        )
        ApiKey.objects.issue(cls.root, "nightly")
        GroupMapping.objects.create(issuer="https://provider.example", value="g", group=cls.groups[0])
        StartingQuestion.objects.create(text="Where?", group=cls.groups[0])
        MessageAllowance.objects.create(group=cls.groups[0], messages=5)
        HouseWord.objects.create(term="WLAN", meaning="wireless network")
        Agent.objects.create(name="helper")

    def setUp(self):
        self.client.force_login(self.root)

    def names(self, page, title):
        """The choices of a filter."""
        [spec] = [each for each in page.context["cl"].filter_specs if each.title == title]
        return [choice["display"] for choice in spec.choices(page.context["cl"])]

    def listed(self, page):
        return {str(row) for row in page.context["cl"].result_list}

    def test_no_page_has_more_than_300_options(self):
        pages = ["/admin/", "/admin/status/", f"{DOCUMENTS}add-several/", f"{DOCUMENTS}access/"]
        for model, page in admin.site._registry.items():
            name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
            pages += [reverse(f"{name}_changelist"), reverse(f"{name}_add")]
            if row := page.model._default_manager.order_by("pk").first():
                pages.append(reverse(f"{name}_change", args=[row.pk]))
        pages.append(f"/admin/auth/group/{self.groups[0].pk}/change/")
        counts = {page: options(self.client.get(page, follow=True)) for page in pages}
        self.assertEqual({page: count for page, count in counts.items() if count > MAX_OPTIONS}, {})
        self.assertGreater(len([count for count in counts.values() if count]), 20)

    def test_a_filter_offers_what_most_rows_have(self):
        for path, title in ((DOCUMENTS, "group"), (USERS, "groups"), (DOCUMENTS, "category")):
            shown = self.names(self.client.get(path), title)
            self.assertLessEqual(len(shown), 53, title)
            self.assertContains(self.client.get(path), "These are the most used")
            if title != "category":
                self.assertIn("Group 499", shown)
                self.assertNotIn("Group 400", shown)

    def test_other_choices_are_found_by_typing_and_narrow_the_list(self):
        for path, title, field in ((DOCUMENTS, "group", "group"), (USERS, "groups", "groups")):
            page = self.client.get(path, {f"{field}_named": "group 40", "q": "4"})
            self.assertEqual(self.names(page, title)[1:11], [f"Group 40{digit}" for digit in range(10)])
            self.assertEqual(len(self.listed(page)), 10)
            self.assertContains(page, '<input type="hidden" name="q" value="4">', html=True)
        page = self.client.get(DOCUMENTS, {"category_named": "CATEGORY 12 "})
        self.assertEqual(len(self.listed(page)), 10)
        self.assertEqual(self.names(page, "category")[1], "category 120")

    def test_a_row_with_two_matching_groups_is_listed_once(self):
        page = self.client.get(USERS, {"groups_named": "Group"})
        self.assertEqual(page.context["cl"].result_count, MANY)

    def test_the_chosen_group_stays_among_the_choices(self):
        group = self.groups[400]
        for path, field, title in (
            (DOCUMENTS, "access_list__entries__group", "group"),
            (USERS, "groups", "groups"),
        ):
            page = self.client.get(path, {f"{field}__id__exact": group.pk})
            self.assertIn("Group 400", self.names(page, title))
            self.assertEqual(len(self.listed(page)), 1)

    def test_letters_without_a_match_find_nothing_and_can_be_changed(self):
        for path, name in (
            (DOCUMENTS, "group_named"),
            (DOCUMENTS, "category_named"),
            (USERS, "groups_named"),
        ):
            page = self.client.get(path, {name: "<nothing>"})
            self.assertEqual(self.listed(page), set())
            self.assertContains(page, 'value="&lt;nothing&gt;"')
            self.assertEqual(self.client.get(path, {name: "1", "_facets": "True"}).status_code, 200)
            self.assertEqual(self.client.get(path, {name: ""}).context["cl"].result_count, self.all(path))

    def all(self, path):
        return self.client.get(path).context["cl"].full_result_count

    def test_a_site_with_few_groups_has_no_search_field(self):
        Group.objects.exclude(pk__in=[group.pk for group in self.groups[:10]]).delete()
        self.assertNotContains(self.client.get(USERS), 'name="groups_named"')
        self.assertEqual(len(self.names(self.client.get(USERS), "groups")), 12)

    def test_groups_of_people_and_of_the_provider_are_found_by_typing(self):
        for path, field in (
            (f"{USERS}{self.root.pk}/change/", "groups"),
            ("/admin/accounts/groupmapping/add/", "group"),
        ):
            self.assertContains(self.client.get(path), f'data-field-name="{field}"')
        clerk = User.objects.create(username="clerk", is_staff=True)
        clerk.groups.add(self.groups[7])
        codenames = ("add_groupmapping", "add_user", "change_user", "view_group")
        clerk.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        self.client.force_login(clerk)
        page = self.client.get("/admin/accounts/groupmapping/add/")
        self.assertContains(page, f'<option value="{self.groups[7].pk}">Group 007</option>', html=True)
        self.assertNotContains(page, "Group 008")
