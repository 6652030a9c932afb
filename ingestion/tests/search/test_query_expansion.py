"""Words that passages spell differently from the question, and question words."""

from unittest import mock

from django.test import SimpleTestCase, TestCase

from chatsite.accounts.models import User
from chatsite.db.sql_files import statement
from ingestion.access.lists import Audience
from ingestion.search.ranking import plans
from ingestion.search.ranking.query_expansion import alternative_spellings, joined_words
from ingestion.search.retrieval import search
from ingestion.search.stopwords import without_question_words
from ingestion.tests.documents import make_document, principal_of

from .test_plans import FORCED, forced

OTHERS = ("The ferry sails at noon.", "Dogs travel on the car deck.", "A day in the office has eight hours.")


class WrittenTests(SimpleTestCase):
    def test_a_word_is_searched_as_a_prefix_and_split_in_two(self):
        self.assertEqual(alternative_spellings("verwaltungsrat")[0], "'verwaltun':*")
        self.assertIn("('verwaltung' & 'rat')", alternative_spellings("verwaltungsrat"))
        self.assertIn("('e' & 'mail')", alternative_spellings("email"))
        self.assertEqual(alternative_spellings("payday"), ["'payda':*", "('pay' & 'day')"])
        self.assertEqual(alternative_spellings("rats"), [])

    def test_numbers_unspaced_scripts_and_very_long_words_are_searched_unchanged(self):
        for word in ("20260104", "b747400", "年假", "a" * 41):
            self.assertEqual(alternative_spellings(word), [], word)

    def test_adjacent_words_are_joined_except_numbers_short_words_and_words_of_the_question(self):
        self.assertEqual(joined_words("When is pay day?", []), ["payday"])
        self.assertEqual(joined_words("PAY-DAY 2026", []), ["payday"])
        self.assertEqual(joined_words("pay day payday", ["pay", "day", "payday"]), ["daypayday"])
        self.assertEqual(joined_words("年假 多少天", []), [])
        self.assertEqual(joined_words("the U.N. in 1.5.2", ["the"]), ["un"])


class QuestionWordsTests(SimpleTestCase):
    def test_question_words_are_removed(self):
        self.assertEqual(without_question_words("年假什么时候开始？").split(), ["年假", "开始？"])
        self.assertEqual(without_question_words("这是年假吗？").split(), ["这是年假", "？"])
        self.assertEqual(without_question_words("吗啡"), "吗啡")

    def test_chinese_question_words_are_removed_with_their_counter_and_verb(self):
        for question, rest in {
            "学校附近有哪条河？": "学校附近有 河？",
            "這是哪一所大學？": "這 大學？",
            "首都的名称是什么？": "首都的名称 ？",
            "塔有多高？": "塔有 ？",
            "许多大城市有地铁吗？": "许多大城市有地铁 ？",
            "任何人都可以申请哪吒卡吗？": "任何人都可以申请哪吒卡 ？",
        }.items():
            self.assertEqual(without_question_words(question).split(), rest.split(), question)

    def test_question_words_missing_from_stop_word_lists_are_removed(self):
        for question, rest in {
            "How many days off are there?": "days off are there?",
            "Wer genehmigt Urlaub, und wie lange?": "genehmigt Urlaub, und ?",
            "Combien de jours?": "de jours?",
            "¿Cuántos días?": "¿ días?",
        }.items():
            self.assertEqual(without_question_words(question).split(), rest.split(), question)

    def test_a_question_of_only_question_words_and_words_that_contain_one_are_kept(self):
        for question in (
            "为什么？",
            "Warum?",
            "Who pays what?",
            "Was heißt das?",
            "Showers, whosesoever",
            "Werke",
        ):
            self.assertEqual(without_question_words(question), question)


class SearchTests(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.reader = principal_of(User.objects.create_user("reader"))
        for number, text in enumerate(OTHERS):
            make_document(f"{number}.txt", [text])

    def found(self, question):
        """The first passage of a search by words, which must be the same with each plan."""
        firsts = set()
        for plan in FORCED:
            with forced(plan):
                passages = search(self.reader, question, mode="text").passages
            firsts.add(passages[0].content if passages else None)
        self.assertEqual(len(firsts), 1, firsts)
        return firsts.pop()

    def test_one_word_finds_its_spelling_as_two(self):
        make_document("pay.txt", ["Your pay day is the last Friday."])
        self.assertEqual(self.found("When is payday?"), "Your pay day is the last Friday.")

    def test_two_words_find_their_spelling_as_one(self):
        make_document("pay.txt", ["Payday is the last Friday."])
        self.assertEqual(self.found("When is pay day?"), "Payday is the last Friday.")

    def test_a_compound_is_found_by_its_first_part(self):
        text = "Der Verwaltungsrat tagt im neuen Haus."
        make_document("haus.txt", [text], language="german")
        self.assertEqual(self.found("Wo ist die Verwaltungsratssitzung?"), text)

    def test_a_long_compound_finds_its_parts(self):
        text = "Die Frist der Kündigung ist ein Monat."
        make_document("frist.txt", [text], language="german")
        self.assertEqual(self.found("Wie lang ist die Kündigungsfrist?"), text)

    def test_a_german_word_is_found_at_the_end_of_compounds(self):
        text = "Die Jahresgebühr der Bücherei ist im Mai zu zahlen."
        make_document("gebühr.txt", [text], language="german")
        make_document("haus.txt", ["Das Haus der Stadt ist im Mai offen."], language="german")
        result = search(self.reader, "Wie hoch sind die Gebühren?")
        self.assertEqual([each.content for each in result.passages], [text])
        self.assertEqual(result.synonyms, {"gebühren": ["jahresgebuhr"]})

    def test_compounds_in_unreadable_passages_change_nothing(self):
        owner = User.objects.create_user("owner")
        make_document("haus.txt", ["Das Haus der Stadt ist im Mai offen."], language="german")
        before = search(self.reader, "Wie hoch sind die Gebühren im Mai?")
        make_document("g.txt", ["Die Jahresgebühr."], language="german", audience=Audience(), owner=owner)
        after = search(self.reader, "Wie hoch sind die Gebühren im Mai?")
        self.assertEqual(after.synonyms, before.synonyms)
        self.assertEqual(
            [(each.content, each.score) for each in after.passages],
            [(each.content, each.score) for each in before.passages],
        )
        self.assertIn(
            "jahresgebuhr", str(search(principal_of(owner), "Wie hoch sind die Gebühren?").expanded)
        )

    def test_a_verb_and_its_particle_find_the_joined_word(self):
        make_document("keys.txt", ["Each lockout costs five pounds."])
        self.assertEqual(self.found("I locked myself out"), "Each lockout costs five pounds.")

    def test_a_german_verb_is_found_in_forms_with_another_stem(self):
        text = "Hunde sind bei der Stadt anzumelden."
        make_document("hund.txt", [text], language="german")
        self.assertEqual(self.found("Wie melde ich den Hund an?"), text)

    def test_a_stop_word_is_not_searched_as_a_prefix(self):
        make_document("where.txt", ["Themselph."])
        self.assertIsNone(self.found("themselves"))

    def test_a_word_in_an_unreadable_passage_changes_nothing(self):
        make_document("pay.txt", ["Your pay day is the last Friday."])
        before = search(self.reader, "When is payday?").passages
        owner = User.objects.create_user("owner")
        make_document("secret.txt", ["Payday."], audience=Audience(), owner=owner)
        after = search(self.reader, "When is payday?").passages
        self.assertTrue(before)
        self.assertEqual(
            [(row.content, row.score) for row in after], [(row.content, row.score) for row in before]
        )

    def test_only_questions_with_an_unknown_word_in_a_large_corpus_are_searched_twice(self):
        for most, repeated in ((plans.MAX_SCAN, 1), (-1, 2)):
            for question, runs in (("ferry", 1), ("the ferry to Helsinki", repeated), ("ferry 20260104", 1)):
                with (
                    self.subTest(question=question, most=most),
                    mock.patch.object(plans, "MAX_SCAN", most),
                    mock.patch.object(plans, "SMALL_CORPUS", -1),  # no statement is prepared
                    mock.patch.object(plans, "planned_rows", side_effect=plans.planned_rows) as run,
                ):
                    search(self.reader, question)
                    searched = [call for call in run.call_args_list if call.args[1] == statement("search")]
                    self.assertEqual(len(searched), runs)

    def test_chinese_question_words_do_not_affect_the_search(self):
        make_document("a.txt", ["什么都没有。"], language="simple")
        make_document("b.txt", ["年假从一月开始。"], language="simple")
        self.assertEqual(self.found("年假什么时候开始？"), "年假从一月开始。")

    def test_an_abbreviation_is_found_with_and_without_its_dots(self):
        make_document("a.txt", ["The U.N. secretary spoke."])
        make_document("b.txt", ["The EC secretary left."])
        self.assertEqual(self.found("What did the UN secretary do?"), "The U.N. secretary spoke.")
        self.assertEqual(self.found("What did the E.C. secretary do?"), "The EC secretary left.")
