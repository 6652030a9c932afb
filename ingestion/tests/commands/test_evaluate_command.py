"""`manage.py evaluate`: its input, the rights it uses, its figures, and its messages about bad lines."""

import json
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from django.core.management import CommandError, call_command
from django.test import SimpleTestCase, TestCase

from chatsite.accounts.models import AuditEntry
from ingestion.evaluation.judging import Settings, UnknownSetting
from ingestion.evaluation.question_files import (
    Corpus,
    Malformed,
    Question,
    Questions,
    read_questions,
    subset,
)
from ingestion.models import Document
from ingestion.tests.factories import command_principal, make_document, make_user

LEAVE = ("page=3", 3, "", "Employees may carry over five days of leave until 31 March.")
SICK = ("page=4", 4, "", "A doctor's note is needed from the fourth day of illness.")


class Folder:
    """Writes files for a test."""

    def setUp(self):
        super().setUp()
        self.folder = Path(self.enterContext(TemporaryDirectory()))

    def write(self, name, *rows):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path


class ReadingTests(Folder, SimpleTestCase):
    def test_expected_answers_are_a_text_with_citations_or_a_list(self):
        path = self.write(
            "q.jsonl",
            {"question": "A?", "truth": "Five days [a.pdf#page=3], see also [b.md]."},
            "",
            {"question": "B?", "truth": ["[a.pdf#page=1]", "b.md"]},
        )
        one, two = read_questions(path).asked
        self.assertEqual((one.place, list(one.truth)), ("line 1", ["a.pdf#page=3", "b.md"]))
        self.assertEqual((two.place, list(two.truth)), ("line 3", ["a.pdf#page=1", "b.md"]))

    def test_questions_without_an_expected_answer_are_counted_and_left_out(self):
        rows = [{"question": "A?", "truth": "[a.pdf]"}]
        rows += [{"question": "B?", "truth": truth} for truth in ("", "none", [], None)]
        found = read_questions(self.write("q.jsonl", *rows, {"question": "C?"}))
        self.assertEqual((len(found.asked), found.without_truth), (1, 5))

    def test_a_bad_line_is_named_with_its_number_and_fault(self):
        good = {"question": "A?", "truth": "[a.pdf]"}
        for bad, words in (
            ("{", "line 2: this is not a line of JSON"),
            ("[" * 100_000, "line 2: this is not a line of JSON"),
            ([1], "line 2: a line must be an object"),
            ({"truth": "[a]"}, "line 2: “question” must be a string"),
            ({"question": " ", "truth": "[a]"}, "line 2: “question” must be a string"),
            ({"question": "B?", "truth": 7}, "line 2: “truth” must be a string"),
            ({"question": "B?", "truth": ["a", 1]}, "line 2: “truth” must be a string"),
        ):
            with self.assertRaisesMessage(Malformed, words):
                read_questions(self.write("q.jsonl", good, bad))

    def test_a_missing_or_invalid_question_file_is_refused_with_a_message(self):
        (self.folder / "latin.jsonl").write_bytes(b'{"question": "\xe4"}')
        (self.folder / "empty").mkdir()
        for path, words in (
            (self.folder / "nothing.jsonl", "There is no file"),
            (self.folder / "latin.jsonl", "not UTF-8"),
            (self.folder / "empty", "There is no file"),
            (self.write("none.jsonl", {"question": "A?"}), "no question says what should be found"),
        ):
            with self.assertRaisesMessage(Malformed, words):
                read_questions(path)

    def test_a_folder_has_queries_judgements_and_texts(self):
        self.write("queries.jsonl", {"_id": "1", "text": "A?"}, {"_id": "2", "text": "B?"})
        self.write(
            "corpus.jsonl", {"_id": "x", "title": "T", "text": "Words."}, {"_id": "y", "text": "More."}
        )
        self.write("qrels/test.tsv", "query-id\tcorpus-id\tscore", "1\tx\t2", "1\ty\t0", "2\ty\t0")
        self.write("qrels/train.tsv", "2\tx\t1")
        found = read_questions(self.folder)
        self.assertEqual([(one.place, one.truth) for one in found.asked], [("query 1", {"x": 2.0})])
        self.assertEqual(found.without_truth, 1)
        self.assertEqual(found.corpus.texts, {"x": ("T", "Words."), "y": ("", "More.")})

    def test_a_folder_without_a_test_split_uses_all_judgements(self):
        self.write("queries.jsonl", {"_id": "1", "text": "A?"})
        self.write("qrels/dev.tsv", "1\t0\tx\t1")  # in trec_eval's form
        self.assertEqual(read_questions(self.folder).asked[0].truth, {"x": 1.0})
        self.assertIsNone(read_questions(self.folder).corpus)
        for line in ("1\tx", "1\tx\tmuch", "7\tx\t1"):
            self.write("qrels/dev.tsv", "1\tx\t1", line)
            with self.assertRaisesMessage(Malformed, "dev.tsv, line 2: "):
                read_questions(self.folder)


class SettingsTests(SimpleTestCase):
    def test_a_part_of_a_folder_leaves_out_only_questions_that_do_not_fit(self):
        broad = {f"d{number}": 1.0 for number in range(8)}
        asked = [Question("query broad", "Moths?", broad)]
        asked += [Question(f"query {n}", f"Moth {n}?", {f"d{n}": 1.0, "gone": 1.0}) for n in range(8, 10)]
        corpus = Corpus({f"d{number}": ("", f"Moth {number}.") for number in range(12)})
        part = subset(Questions(asked, 0, corpus), 6)
        self.assertEqual({question.place for question in part.asked}, {"query 8", "query 9"})
        self.assertEqual(len(part.corpus.texts), 6)
        self.assertLessEqual({"d8", "d9"}, part.corpus.texts.keys())

    def test_settings_are_written_by_name(self):
        settings = Settings.of("mode=text, top=5,minimum_score=0.2,include_category=rules")
        self.assertEqual((settings.mode, settings.top, settings.minimum_score), ("text", 5, 0.2))
        self.assertEqual(str(Settings.of("")), "mode=hybrid")
        self.assertEqual(str(Settings.of("mode=text,top=5")), "mode=text, top=5")

    def test_an_unknown_setting_is_refused_with_a_list_of_the_settings(self):
        for text in ("depth=3", "mode=bm25", "top=0", "top=51", "top=x", "minimum_score=nan", "mode"):
            with self.assertRaises(UnknownSetting):
                Settings.of(text)


@pytest.mark.slow
class CommandTests(Folder, TestCase):
    def setUp(self):
        super().setUp()
        self.ann = make_user("ann", groups=["HR"])
        self.bob = make_user("bob")
        make_document("handbook.pdf", [LEAVE, SICK], everyone=True)
        make_document(
            "secret.md", ["Five days of leave were bought back."], groups=list(self.ann.groups.all())
        )
        self.file = self.write(
            "q.jsonl",
            {"question": "How many days of leave may I carry over?", "truth": "[handbook.pdf#page=3]"},
            {"question": "When is a doctor's note needed?", "truth": "[handbook.pdf#page=4]"},
            {"question": "Which leave was bought back?", "truth": ["secret"]},
            {"question": "Who knows?"},
            {"question": "What of zeppelins?", "truth": "[zeppelins.pdf#page=1]"},
        )

    def run_command(self, *arguments):
        output = StringIO()
        call_command("evaluate", *map(str, arguments), stdout=output)
        return output.getvalue()

    def values(self, *arguments):
        return json.loads(self.run_command(*arguments, "--json"))

    def test_the_command_prints_figures_intervals_and_omissions(self):
        told = self.run_command(self.file, "--as", "ann")
        self.assertIn("3 questions as ann, who may read 2 documents.", told)
        self.assertIn("Left out: 1 without truth, 1 whose places ann cannot find.", told)
        self.assertIn("line 5: [zeppelins.pdf#page=1]: there is no such document", told)
        for line in (r"recall +1\.000 \(1\.000 to 1\.000\)", r"MRR +[01]\.\d{3} \(", r"nDCG +[01]\.\d{3} \("):
            self.assertRegex(told, line)

    def test_the_search_has_the_rights_of_the_named_person(self):
        values = self.values(self.file, "--as", "bob")
        self.assertEqual((values["questions"], values["left_out"], values["documents"]), (2, 2, 1))
        self.assertIn("bob may not read it", [problem["why"] for problem in values["problems"]])
        self.assertNotIn("secret.md", json.dumps([one["found"] for one in values["details"]]))
        self.assertEqual(self.values(self.file, "--as", "ann")["questions"], 3)

    def test_each_use_is_in_the_audit_log(self):
        self.run_command(self.file, "--as", "bob")
        entry = AuditEntry.objects.get()
        self.assertEqual((entry.action, entry.person_id), ("search_as", self.bob.pk))
        self.assertEqual(entry.subject, "4 questions of a file, to evaluate search")

    def test_two_settings_are_compared_question_by_question(self):
        found = ("--as", "ann", "--with", "mode=text", "--against", "mode=text,include_category=none")
        values = self.values(self.file, *found)
        against = values["against"]
        self.assertEqual(against["figures"]["nDCG@10"]["mean"], 0)
        self.assertEqual(against["difference"]["nDCG@10"], values["figures"]["nDCG@10"])
        self.assertEqual((against["better"], against["worse"]), (["line 1", "line 2", "line 3"], []))
        told = self.run_command(self.file, *found, "--details")
        self.assertIn("By nDCG at 10: 3 better, 0 worse, 0 the same.", told)
        self.assertIn("0.00 → 1.00  How many days of leave may I carry over?", told)

    def test_search_is_compared_with_stemmed_bm25_over_what_the_reader_may_read(self):
        values = self.values(self.file, "--as", "ann")
        figures, yardstick = values["figures"]["nDCG@10"], values["yardstick"]["figures"]["nDCG@10"]
        self.assertEqual(yardstick["mean"], 1)
        self.assertAlmostEqual(
            values["yardstick"]["lead"]["nDCG@10"]["mean"], figures["mean"] - yardstick["mean"]
        )
        # The index for bob has no words of documents that he may not read.
        self.assertEqual(self.values(self.file, "--as", "bob")["passages"], 2)
        told = self.run_command(self.file, "--as", "ann")
        self.assertRegex(told, r"stemmed BM25\n +at 3")
        self.assertRegex(told, r"mode=hybrid less stemmed BM25\n")

    def test_the_command_counts_refused_questions_of_both_kinds(self):
        others = self.write("others.txt", "Who painted the Sistine Chapel?", "", "How many days of leave?")
        values = self.values(self.file, "--as", "ann", "--off-topic", others)
        self.assertEqual(values["refusals"]["own"]["refused"], 0)
        found = values["refusals"]["off_topic"]
        self.assertEqual((found["asked"], found["refused"]), (2, 1))
        told = self.run_command(self.file, "--as", "ann", "--off-topic", others)
        self.assertIn("Nothing found, or unsure, among 3 passages:", told)
        self.assertIn("questions about other things: 50.0% refused", told)

    def test_a_folder_is_measured_at_several_sizes(self):
        texts = [
            {"_id": f"d{number}", "title": "", "text": f"Moth number {number} flies."} for number in range(12)
        ]
        self.write("corpus.jsonl", *texts)
        self.write(
            "queries.jsonl", *[{"_id": f"q{n}", "text": f"Which moth is number {n}?"} for n in range(12)]
        )
        self.write("qrels/test.tsv", *[f"q{number}\td{number}\t1" for number in range(12)])

        @contextmanager
        def here():
            Document.objects.all().delete()
            yield command_principal(self.bob)

        with patch("ingestion.management.commands.evaluate.empty_database", here):
            reports = [
                json.loads(line)
                for line in self.run_command(self.folder, "--sizes", "4,99", "--json").split("\n")
                if line
            ]
        self.assertEqual([(one["passages"], one["questions"]) for one in reports], [(4, 2), (12, 12)])
        with self.assertRaisesMessage(CommandError, "--sizes is for folders"):
            self.run_command(self.file, "--as", "ann", "--sizes", "4")

    def test_a_long_text_is_split_as_on_the_site_and_counted_once(self):
        text = "\n\n".join(f"Moth number {number} flies over field {number % 7}." for number in range(60))
        self.write("corpus.jsonl", {"_id": "moths", "title": "", "text": text})
        self.write("queries.jsonl", {"_id": "q", "text": "Which moth is number 31?"})
        self.write("qrels/test.tsv", "q\tmoths\t1")

        @contextmanager
        def here():
            Document.objects.all().delete()
            yield command_principal(self.bob)

        with patch("ingestion.management.commands.evaluate.empty_database", here):
            values = self.values(self.folder)
        self.assertEqual(values["documents"], 1)
        self.assertGreater(values["passages"], 3)
        self.assertEqual(values["figures"]["nDCG@10"]["mean"], 1)
        self.assertEqual(values["yardstick"]["figures"]["nDCG@10"]["mean"], 1)

    def test_the_details_list_the_passages_that_were_not_found(self):
        told = self.run_command(self.file, "--as", "ann", "--with", "include_category=none", "--details")
        self.assertIn("Not found under include_category=none: 3", told)
        self.assertIn("wanted handbook.pdf#page=3; found nothing", told)

    def test_each_evaluation_gives_the_same_figures(self):
        self.assertEqual(self.values(self.file, "--as", "ann"), self.values(self.file, "--as", "ann"))

    def test_a_missing_unknown_or_disabled_reader_is_reported(self):
        make_user("eve", is_active=False)
        for arguments, words in (
            ((), "Name the person whose rights apply: --as USER."),
            (("--as", "nobody"), "There is no account named “nobody”."),
            (("--as", "eve"), "is disabled"),
            (("--as", "ann", "--with", "depth=3"), "There is no setting “depth”"),
        ):
            with self.assertRaisesMessage(CommandError, words):
                self.run_command(self.file, *arguments)
        path = self.write("none.jsonl", {"question": "A?", "truth": "[zeppelins.pdf]"})
        with self.assertRaisesMessage(
            CommandError, "No question can be judged as ann: there is no such document."
        ):
            self.run_command(path, "--as", "ann")

    def test_an_ambiguous_document_name_is_refused(self):
        for folder in ("a", "b"):
            make_document("twin.md", ["Leave of twins."], everyone=True, folder=folder)
        path = self.write(
            "q.jsonl",
            {"question": "Leave of twins?", "truth": "[a/twin.md]"},
            {"question": "Leave of twins?", "truth": "[twin.md]"},
        )
        values = self.values(path, "--as", "ann")
        self.assertEqual(values["questions"], 1)
        self.assertEqual(values["problems"][0]["why"], "several documents have this name")

    def test_a_folder_with_texts_is_searched_in_a_database_of_its_own(self):
        self.write("queries.jsonl", {"_id": "1", "text": "Which moths fly by day?"})
        self.write(
            "corpus.jsonl",
            {"_id": "x/[1]", "title": "Moths", "text": "The hummingbird hawk-moth flies by day."},
            {"_id": "y", "title": "Owls", "text": "Owls fly by night."},
        )
        self.write("qrels/test.tsv", "1\tx/[1]\t1", "1\tgone\t1")

        @contextmanager
        def here():
            yield command_principal(self.bob)

        with patch("ingestion.management.commands.evaluate.empty_database", here):
            values = self.values(self.folder)
        self.assertEqual(values["figures"]["nDCG@3"]["mean"], 1)
        self.assertEqual(
            values["problems"], [{"place": "query 1", "citation": "gone", "why": "there is no such text"}]
        )
        with self.assertRaisesMessage(CommandError, "leave out --as"):
            self.run_command(self.folder, "--as", "ann")

    def test_a_folder_without_texts_asks_for_documents_by_name(self):
        self.write("queries.jsonl", {"_id": "1", "text": "How many days of leave may I carry over?"})
        self.write("qrels/test.tsv", "1\thandbook\t1")
        self.assertEqual(self.values(self.folder, "--as", "bob")["figures"]["recall@3"]["mean"], 1)
