"""What documents are called in citations, and that the name leads back to them."""

import unicodedata

import pytest
from django.test import TestCase

from chatsite.accounts.models import User
from ingestion.indexing.passages import NewPassage
from ingestion.search.name_resolution import resolve
from ingestion.search.retrieval import search
from ingestion.tests.documents import make_document, principal_of

HOSTILE = (
    "a]b.txt",
    "[[x]].txt",
    "a: b.txt",
    "a#page=3.txt",
    "a\nb.txt",
    "a\u2028\u202eb.txt",
    'it\'s "quoted".txt',
    "<img src=x onerror=alert(1)>.txt",
    "%s %(name)s.txt",
    "..",
    "../../etc/passwd",
    "a/b.txt",
    "a~deadbeef.txt",
    "  spaced  .txt",
    ".hidden",
    "no ending",
    "#",
    "年假.txt",
)


class LabelTests(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.principal = principal_of(User.objects.create_user("reader"))

    def found(self):
        return search(self.principal, "annual leave", top=50).passages

    def assert_all_resolve(self):
        for passage in self.found():
            document = resolve(self.principal, passage.sourcefile)
            self.assertIsNotNone(document, passage.sourcefile)
            self.assertEqual(document.pk, passage.document_id, passage.sourcefile)

    def test_a_unique_name_is_the_label(self):
        make_document("handbook.txt", [NewPassage("page=3", 3, "", "Annual leave.")], folder="hr")
        (passage,) = self.found()
        self.assertEqual((passage.label, passage.sourcefile), ("handbook.txt#page=3", "handbook.txt"))
        self.assert_all_resolve()

    def test_a_name_used_twice_gets_the_folder(self):
        make_document("handbook.txt", ["Annual leave one."], folder="hr/old")
        make_document("handbook.txt", ["Annual leave two."], folder="hr")
        self.assertEqual(
            {passage.label for passage in self.found()}, {"hr/old/handbook.txt", "hr/handbook.txt"}
        )
        self.assert_all_resolve()

    def test_a_path_used_twice_gets_digits_of_the_id(self):
        documents = [make_document("handbook.txt", [f"Annual leave {number}."]) for number in range(2)]
        expected = {f"handbook~{document.public_id.hex[:8]}.txt" for document in documents}
        self.assertEqual({passage.label for passage in self.found()}, expected)
        self.assertIsNone(resolve(self.principal, "handbook.txt"))
        self.assert_all_resolve()

    def test_documents_with_the_same_digits_get_the_whole_id(self):
        documents = [make_document("handbook.txt", [f"Annual leave {number}."]) for number in range(2)]
        digits = documents[0].public_id.hex[:8]
        documents[1].public_id = type(documents[1].public_id)(hex=digits + documents[1].public_id.hex[8:])
        documents[1].save()
        self.assertEqual({len(passage.label) for passage in self.found()}, {len("handbook~.txt") + 32})
        self.assert_all_resolve()

    @pytest.mark.slow
    def test_a_hostile_name_makes_a_harmless_label_that_resolves(self):
        for number, name in enumerate(HOSTILE):
            folder = "a" if number % 2 else "x]/.."
            make_document(name, [f"Annual leave {number}."], folder=folder)
            make_document(name, [f"Annual leave again {number}."], folder=folder)
        passages = self.found()
        self.assertEqual(len(passages), 2 * len(HOSTILE))
        self.assertEqual(len({passage.label for passage in passages}), len(passages))
        for passage in passages:
            self.assertNotRegex(passage.label, r"[\[\]:#\n]")
            self.assertNotIn("..", passage.label.split("/"))
            self.assertFalse(any(unicodedata.category(letter)[0] == "C" for letter in passage.label))
        self.assert_all_resolve()

    def test_a_hostile_anchor_makes_a_harmless_label(self):
        make_document("a.txt", [NewPassage("sheet=[1]: x\n#y", None, "", "Annual leave.")])
        (passage,) = self.found()
        self.assertEqual(passage.label, "a.txt#sheet=(1)- x -y")

    def test_unknown_names_resolve_to_nothing(self):
        make_document("handbook.txt", ["Annual leave."])
        for name in (
            "",
            "/",
            "\0",
            "handbook",
            "HANDBOOK.TXT",
            "x/handbook.txt",
            "handbook~00000000.txt",
            "%",
        ):
            self.assertIsNone(resolve(self.principal, name), name)
