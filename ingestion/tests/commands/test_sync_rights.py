"""`manage.py sync`: the readers of a tree's files, and that changes never show text to the wrong people."""

import os
import subprocess
from unittest import mock

import pytest
from django.contrib.auth.models import Group
from django.test import TestCase, override_settings
from procrastinate.contrib.django.models import ProcrastinateJob

from chatsite.accounts.models import User
from ingestion import documents
from ingestion.access.lists import audience_of
from ingestion.models import Document, Passage, SourceFile
from ingestion.sources import folder_rights
from ingestion.sources.tree import scan_tree
from ingestion.tests.commands.test_sync_command import SyncMixin
from ingestion.tests.media import principal


class RightsTests(SyncMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.hr, self.board = (Group.objects.create(name=name) for name in ("HR", "Board"))
        self.ann, self.bob = (User.objects.create(username=name) for name in ("ann", "bob"))
        self.ann.groups.add(self.hr)

    def readable(self, user):
        return sorted(Document.objects.visible_to(principal(user)).values_list("name", flat=True))

    def test_the_nearest_rights_file_decides_who_may_read(self):
        self.put(".chatsite.toml", "everyone = true")
        self.put("a.md")
        self.put("pay/.chatsite.toml", 'groups = ["HR"]\ncategory = "pay"')
        self.put("pay/2025/b.md")
        self.assertEqual(self.sync(), "2 new.")
        self.assertEqual((self.readable(self.ann), self.readable(self.bob)), (["a.md", "b.md"], ["a.md"]))
        self.assertEqual(Document.objects.get(name="b.md").category, "pay")

    def test_a_byte_order_mark_and_decomposed_letters_change_no_rights(self):
        people = Group.objects.create(name="B\u00fcro")
        self.ann.groups.add(people)
        self.put(".chatsite.toml", '\ufeffgroups = ["Bu\u0308ro"]\nusers = ["bob"]')
        self.put("a.md")
        self.assertEqual(self.sync(), "1 new.")
        self.assertEqual((self.readable(self.ann), self.readable(self.bob)), (["a.md"], ["a.md"]))
        (self.root / ".chatsite.toml").unlink()
        self.assertEqual(self.sync("--group", "Bu\u0308ro"), "1 with other readers or another place.")
        self.assertEqual((self.readable(self.ann), self.readable(self.bob)), (["a.md"], []))
        exact = Group.objects.create(name="Bu\u0308ro")
        self.bob.groups.add(exact)
        self.sync("--group", "Bu\u0308ro")
        self.assertEqual((self.readable(self.ann), self.readable(self.bob)), ([], ["a.md"]))

    def test_a_tree_without_rights_is_not_ingested(self):
        self.put("a.md")
        self.assertIn("No readers are specified", self.refused())
        self.assertEqual(Document.objects.count(), 0)

    def test_changed_rights_write_only_the_access_list(self):
        self.put("a.md")
        self.sync("--everyone", now=True)
        passage = Passage.objects.get()
        self.assertEqual(self.sync("--group", "HR"), "1 with other readers or another place.")
        self.assertEqual((self.readable(self.ann), self.readable(self.bob)), (["a.md"], []))
        self.assertEqual((Passage.objects.get(), Document.objects.get().version), (passage, 1))

    def test_an_invalid_rights_file_leaves_the_rights_of_its_folder_unchanged(self):
        wrong = {
            'groups = ["Nobody"]': "there is no group named Nobody.",
            'users = ["nobody"]': "there is no user named nobody.",
            "everyone = 1": "everyone must be true or false.",
            "groups = 'HR'": "groups must be a list of names.",
            "everybody = true": "unknown setting everybody.",
            'everyone = true\nusers = ["ann"]': "everyone already includes",
            "users = []": "it names no readers.",
            "groups = [": "is not TOML",
            "groups = " + "[" * 50_000: "is nested too deeply.",
            'users = ["\\u0000"]': "there is no user named",
        }
        self.put(".chatsite.toml", "everyone = true")
        self.put("pay/.chatsite.toml", 'groups = ["HR"]')
        self.put("pay/a.md")
        self.sync(now=True)
        self.put("pay/new.md")
        self.put("pay/a.md", "Changed.")
        for text, reason in wrong.items():
            self.put("pay/.chatsite.toml", text)
            said = self.refused()
            self.assertIn(reason, said)
            self.assertIn("The folder is not changed.", said)
            self.assertEqual((self.readable(self.ann), self.readable(self.bob)), (["a.md"], []))
            self.assertEqual(self.texts(), ["Words."])

    def while_scanning(self, change):
        """Synchronise; `change` is made after the tree was listed. Returns what the command said."""

        def scanned(root):
            tree = scan_tree(root)
            change()
            return tree

        with mock.patch("ingestion.sources.mirror.scan_tree", side_effect=scanned):
            return self.refused()

    def test_a_folder_that_is_moved_during_the_run_does_not_get_the_rights_of_the_folder_above(self):
        self.put(".chatsite.toml", "everyone = true")
        self.put("pay/.chatsite.toml", 'groups = ["HR"]')
        self.put("pay/a.md")
        self.sync()
        said = self.while_scanning(lambda: (self.root / "pay").rename(self.root / "salaries"))
        self.assertIn("was moved or replaced meanwhile", said)
        self.assertEqual((self.readable(self.ann), self.readable(self.bob)), (["a.md"], []))

    def test_a_rights_file_removed_during_the_run_does_not_open_the_folder(self):
        self.put(".chatsite.toml", "everyone = true")
        self.put("pay/.chatsite.toml", 'groups = ["HR"]')
        self.put("pay/a.md")
        self.sync()
        said = self.while_scanning((self.root / "pay/.chatsite.toml").unlink)
        self.assertIn("pay/.chatsite.toml was removed while the folder was read.", said)
        self.assertEqual((self.readable(self.ann), self.readable(self.bob)), (["a.md"], []))

    def test_a_rights_file_that_is_a_link_is_ignored(self):
        self.put("rights.toml", "everyone = true")
        (self.root / ".chatsite.toml").symlink_to(self.root / "rights.toml")
        self.assertIn(".chatsite.toml cannot be opened", self.refused("--group", "HR"))
        self.assertEqual(Document.objects.count(), 0)

    def test_the_owner_may_always_read(self):
        self.put("a.md")
        self.sync("--group", "Board", "--owner", "bob")
        self.assertEqual((self.readable(self.ann), self.readable(self.bob)), ([], ["a.md"]))
        self.assertEqual(self.sync("--group", "Board", "--owner", "bob"), "1 unchanged.")

    def test_new_readers_do_not_get_the_former_contents(self):
        self.put("a.md", "Secret.")
        self.sync("--group", "HR", now=True)
        before = Document.objects.get()
        self.put("a.md", "Without the secret.")
        self.sync("--everyone")
        after = Document.objects.get()
        self.assertNotEqual(after.public_id, before.public_id)
        self.assertEqual(self.texts(), [])

    @override_settings(DOCUMENT_MAX_BYTES=10)
    def test_readers_are_removed_even_if_the_new_contents_are_refused(self):
        self.put("a.md")
        self.sync("--everyone")
        self.put("a.md", "x" * 11)
        self.assertIn("larger than", self.refused("--group", "HR"))
        self.assertEqual(self.readable(self.bob), [])
        self.assertEqual(audience_of(Document.objects.get()).group_ids, {self.hr.pk})
        self.assertEqual(SourceFile.objects.count(), 1)

    def test_new_readers_of_unread_contents_cannot_read_the_former_ones(self):
        for read in (False, True):  # the new contents are waiting, or were refused as unreadable
            with self.subTest(read=read):
                self.put("a.md", "Secret.", age=5)
                self.sync("--group", "HR", now=True)
                self.put("a.md", "" if read else "Without the secret.", age=4)
                self.sync("--group", "HR")
                if read:
                    documents.read_document(Document.objects.get().pk, self.replacement())
                self.assertEqual(self.texts(), ["Secret."])
                self.sync("--everyone")
                self.assertEqual(self.texts(), [])
                self.assertEqual(self.readable(self.bob), ["a.md"])
                Document.objects.all().delete()

    def replacement(self):
        return ProcrastinateJob.objects.exclude(args__replacement=None).latest("pk").args["replacement"]

    def test_folders_whose_names_end_in_dots_have_their_own_rights(self):
        self.put(".chatsite.toml", "everyone = true")
        self.put("Acme Inc./.chatsite.toml", 'groups = ["HR"]')
        self.put("Acme Inc./a.md")
        self.put("Acme Inc./deeper/b.md")
        self.put("Acme Inc/c.md")
        self.sync()
        self.assertEqual(self.readable(self.ann), ["a.md", "b.md", "c.md"])
        self.assertEqual(self.readable(self.bob), ["c.md"])
        self.assertCountEqual(self.paths(), ["Acme Inc/c.md", "Acme Inc./a.md", "Acme Inc./deeper/b.md"])

    def test_an_overlong_rights_file_is_not_read_in_part(self):
        self.put(".chatsite.toml", "everyone = true\n" + "#" * folder_rights.FILE_BYTES)
        self.put("a.md")
        self.assertIn("is larger than 100,000 bytes.", self.refused())
        self.assertEqual(Document.objects.count(), 0)

    def test_a_category_that_is_too_long_is_shortened(self):
        for number, category in enumerate(("x" * 200, "\\u0000pay\\n")):
            self.put(f"{number}/.chatsite.toml", f'everyone = true\ncategory = "{category}"')
            self.put(f"{number}/a.md")
        self.assertIn("2 new", self.sync())
        self.assertCountEqual(Document.objects.values_list("category", flat=True), ["x" * 100, "pay"])
        self.assertIn("2 unchanged", self.sync())
        self.assertIn("2 unchanged", self.sync("--everyone", "--category", "y" * 200))

    @pytest.mark.slow
    def test_a_tree_is_followed_to_the_greatest_path_length(self):
        self.put(".chatsite.toml", 'groups = ["HR"]')
        self.put("a/" * 200 + "b.md")
        self.put("a/" * 490 + "c.md")
        self.addCleanup(subprocess.run, ["rm", "-rf", self.root / "a"], check=True)
        deepest = os.open(self.root / ("a/" * 490), os.O_PATH)
        for _ in range(1_000):
            os.mkdir("a", dir_fd=deepest)
            above, deepest = deepest, os.open("a", os.O_PATH, dir_fd=deepest)
            os.close(above)
        os.close(deepest)
        self.assertIn("Its path is longer than 1000 characters.", self.refused())
        self.assertEqual((self.readable(self.ann), self.readable(self.bob)), (["b.md"], []))
