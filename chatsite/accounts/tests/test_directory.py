"""People and groups found by letters of their names: by whom, and who is never found."""

from datetime import timedelta

from django.contrib.auth.models import Group
from django.test import TestCase
from django.utils import timezone

from chatsite.accounts import directory
from chatsite.accounts.models import User
from ingestion.access.lists import Audience, audience_of
from ingestion.models import Document
from ingestion.portal.forms import MAX_BOXES
from ingestion.tests.factories import make_document, make_user


class DirectoryTests(TestCase):
    def setUp(self):
        self.ann = make_user("ann", first_name="Ann", last_name="Smith")
        self.jo = make_user("jsmith", first_name="Jo", last_name="Ann-Smith", groups=["Deck"])
        self.staff = make_user("sam", is_staff=True)
        make_user("annie", first_name="Annie", is_active=False)
        make_user("guest-ann", guest_until=timezone.now() + timedelta(days=1))
        make_user("ann-program", service_for="Ann's wiki")
        Group.objects.create(name="Engine")
        self.client.force_login(self.ann)

    def found(self, query, what="people"):
        return self.client.get(f"/directory/{what}", {"q": query}).json()["found"]

    def test_letters_of_any_name_find_people_and_prefixes_come_first(self):
        self.assertEqual(self.found("ann"), ["Jo Ann-Smith (jsmith)", "Ann Smith (ann)"])
        self.assertEqual(self.found("smith jo"), ["Jo Ann-Smith (jsmith)"])
        self.assertEqual(self.found("SAM"), ["sam"])

    def test_an_empty_search_finds_nothing_and_wildcards_are_literal(self):
        for query in ("", "  ", "%", "_", "\0", "ann' OR 1=1", "x" * 10_000):
            self.assertEqual(self.found(query), [], query[:20])

    def test_disabled_people_guests_and_programs_are_not_found(self):
        self.assertEqual(self.found("annie") + self.found("guest") + self.found("program"), [])

    def test_the_number_of_results_is_limited(self):
        User.objects.bulk_create(User(username=f"person-{number}") for number in range(50))
        self.assertEqual(len(self.found("person")), directory.MAX_RESULTS)

    def test_people_find_their_own_groups_and_staff_find_all(self):
        self.assertEqual(self.found("e", "groups"), [])
        self.client.force_login(self.jo)
        self.assertEqual(self.found("e", "groups"), ["Deck"])
        self.client.force_login(self.staff)
        self.assertEqual(self.found("e", "groups"), ["Engine", "Deck"])

    def test_anonymous_callers_are_redirected_to_sign_in(self):
        self.client.logout()
        for what in ("people", "groups"):
            self.assertRedirects(
                self.client.get(f"/directory/{what}?q=ann"),
                f"/accounts/sign-in/?next=/directory/{what}%3Fq%3Dann",
            )

    def test_a_chosen_suggestion_is_read_as_its_user_name(self):
        odd = make_user("odd", first_name="O, (the)", last_name="Odd; One")
        self.assertEqual(directory.entry(odd), "O the Odd One (odd)")
        typed = f"{directory.entry(odd)}, {directory.entry(self.ann)}, jsmith sam; bob\neve,"
        self.assertEqual(directory.usernames(typed), {"odd", "ann", "jsmith", "sam", "bob", "eve"})
        self.assertEqual(directory.usernames("(ann)(bob), ()"), {"bob", "()"})


class RightsFormTests(TestCase):
    def setUp(self):
        self.staff = make_user("sam", is_staff=True, is_superuser=True, groups=["Own"])
        self.ann = make_user("ann", first_name="Ann", last_name="Smith")
        self.client.force_login(self.staff)
        Group.objects.bulk_create(Group(name=f"Team, {number}") for number in range(MAX_BOXES + 1))
        self.document = make_document("a.md", owner=self.staff, users=[self.ann])
        self.page = f"/documents/{self.document.public_id}/"

    def test_the_form_names_people_and_shows_the_likely_ones_of_many_groups(self):
        shown = self.client.get(self.page)
        self.assertContains(shown, "Ann Smith (ann)")
        self.assertContains(shown, "<bdi>Own</bdi>")
        self.assertNotContains(shown, "Team, 7")
        self.assertContains(shown, 'name="other_groups"')

    def test_typed_groups_stay_chosen_after_the_confirmation(self):
        wish = {"who": "some", "people": "Ann Smith (ann)", "other_groups": "Team, 7\n\nTeam, 9\n"}
        asked = self.client.post(f"{self.page}rights/", wish)
        chosen = Group.objects.filter(name__in=["Team, 7", "Team, 9"])
        for group in chosen:
            self.assertContains(asked, f'<input type="hidden" name="groups" value="{group.pk}">', html=True)
        self.client.post(
            f"{self.page}rights/",
            {"who": "some", "people": "ann", "groups": [group.pk for group in chosen], "confirmed": "yes"},
        )
        self.assertEqual(
            audience_of(Document.objects.get(pk=self.document.pk)),
            Audience(user_ids=frozenset({self.ann.pk}), group_ids=frozenset(group.pk for group in chosen)),
        )

    def test_an_unknown_group_is_named(self):
        wish = {"who": "some", "other_groups": "Team, 7\nTeam of nobody"}
        refused = self.client.post(f"{self.page}rights/", wish)
        self.assertContains(refused, "There is no group named Team of nobody.", status_code=422)
        self.assertContains(refused, "Team of nobody</textarea>", status_code=422)

    def test_only_staff_may_type_groups(self):
        self.client.force_login(self.ann)
        mine = make_document("mine.md", owner=self.ann)
        page = f"/documents/{mine.public_id}/"
        self.assertNotContains(self.client.get(page), "other_groups")
        wish = {"who": "some", "other_groups": "Team, 7", "confirmed": "yes"}
        self.assertEqual(self.client.post(f"{page}rights/", wish).status_code, 422)
        self.assertEqual(audience_of(Document.objects.get(pk=mine.pk)).group_ids, frozenset())
