"""Which questions depend on earlier ones, in several languages, and what search finds for them."""

import asyncio

from django.test import SimpleTestCase, TestCase

from chat.engine.searching import search_for
from chat.llm.followup_detection import (
    context_of,
    leaned_on,
    leans_on_earlier,
    may_lean_on_earlier,
)
from chat.quoting.quoting_model import QuotingModel
from chat.requests import EarlierMessage
from chatsite.accounts.models import User
from ingestion.search.retrieval import search
from ingestion.tests.documents import make_document, principal_of

LEANING = {
    "english": ("And for part-time staff?", "What about crews?", "Who approves it?", "Why?"),
    "german": (
        "Und für Teilzeitkräfte?",
        "Wer genehmigt sie?",
        "Was ist mit der Probezeit?",
        "Wann beginnt dann die Frist?",
    ),
    "french": (
        "Et pour les temps partiels ?",
        "Qu'en est-il des équipages ?",
        "Qui décide de cela ?",
        "Pourquoi ?",
    ),
    "chinese": ("那么兼职员工呢？", "由谁批准它？", "如果我生病了怎么办？", "为什么？"),
}
STANDING = {
    "english": ("How much annual leave do I get?", "Is there a company gym?"),
    "german": ("Wie viel Urlaub steht mir im Jahr zu?", "Haben Sie eine Kantine im Hafen?"),
    "french": ("Combien de jours de congé ai-je par an ?", "En quelle année le port a-t-il ouvert ?"),
    "chinese": ("我每年有多少天年假？", "港口是哪一年开放的？"),
}
# A question, its follow-up question, and passages on the subject, of which the second answers the follow-up.
CONVERSATIONS = {
    "english": (
        "How many days of annual leave do office staff get?",
        "And part-time staff?",
        (
            "Annual leave is 27 days for office staff.",
            "Annual leave of part-time staff is 14 days.",
            "Part-time work is agreed in May.",
        ),
    ),
    "german": (
        "Wie viele Tage Urlaub bekommt das Büro?",
        "Und die Teilzeitkräfte?",
        (
            "Das Büro bekommt 27 Tage Urlaub.",
            "Urlaub der Teilzeitkräfte: 14 Tage.",
            "Teilzeitkräfte melden sich im Mai.",
        ),
    ),
    "french": (
        "Combien de jours de congé a le personnel de bureau ?",
        "Et les équipages ?",
        (
            "Le personnel de bureau a 27 jours de congé.",
            "Les équipages ont 14 jours de congé.",
            "Les équipages mangent à midi.",
        ),
    ),
    "simple": (
        "办公室员工有多少天年假？",
        "那么兼职员工呢？",
        ("办公室员工每年有二十七天年假。", "兼职员工每年有十四天年假。", "兼职员工五月签订合同。"),
    ),
}


class LeaningTests(SimpleTestCase):
    def test_questions_that_continue_or_refer_back_depend_on_earlier_ones(self):
        for language, questions in LEANING.items():
            for question in questions:
                with self.subTest(language=language, question=question):
                    self.assertTrue(leans_on_earlier(question))

    def test_self_contained_questions_do_not_depend_on_earlier_ones(self):
        for language, questions in STANDING.items():
            for question in questions:
                with self.subTest(language=language, question=question):
                    self.assertFalse(leans_on_earlier(question))

    def test_a_follow_up_depends_on_the_last_self_contained_question(self):
        for language, questions in STANDING.items():
            turns = [
                EarlierMessage("user", questions[0]),
                EarlierMessage("assistant", "…"),
                EarlierMessage("user", LEANING[language][0]),
            ]
            with self.subTest(language=language):
                self.assertEqual(leaned_on(LEANING[language][1], turns), [questions[0]])


class FollowUpSearchTests(TestCase):
    def test_a_follow_up_finds_its_subject_in_each_language(self):
        principal = principal_of(User.objects.create_user("reader"))
        for language, (_, _, passages) in CONVERSATIONS.items():
            make_document(f"{language}.txt", list(passages), language=language)
        for language, (first, second, passages) in CONVERSATIONS.items():
            with self.subTest(language=language):
                query = asyncio.run(QuotingModel().search_query(second, [EarlierMessage("user", first)]))
                found = [
                    passage.content
                    for passage in search(principal, query.text, context=query.context).passages
                ]
                self.assertIn(passages[1], found[:2])
                self.assertLess(found.index(passages[1]), [*found, passages[2]].index(passages[2]))

    def test_a_passage_about_an_added_term_is_found_among_many_about_the_subject(self):
        principal = principal_of(User.objects.create_user("reader"))
        days = [f"Leave for jury service in week {number} of the court’s year." for number in range(6)]
        make_document("jury.txt", days)
        make_document("family.txt", ["Leave for a wedding: two days.", "A wedding is fun."])
        query = asyncio.run(
            QuotingModel().search_query(
                "and for my wedding?", [EarlierMessage("user", "How much leave do I get for jury service?")]
            )
        )
        found = search_for(principal, query).passages
        self.assertEqual(len(found), 5)
        self.assertIn("Leave for a wedding: two days.", [passage.content for passage in found])

    def test_a_passage_with_another_word_for_the_term_is_found_among_many_with_the_term(self):
        principal = principal_of(User.objects.create_user("reader"))
        rules = [f"Carried days of leave must be used by {day} March." for day in range(1, 7)]
        make_document(
            "leave.txt", [*rules, "Seagoing staff do not carry leave over. Days lost are credited."]
        )
        make_document("crews.txt", [f"Crews of vessel {name} must use locker {name}." for name in "ABCDEFGH"])
        before = EarlierMessage("user", "When must carried days of leave be used?")
        query = asyncio.run(QuotingModel().search_query("and for crews?", [before]))
        found = search_for(principal, query).passages
        self.assertTrue(any(passage.content.startswith("Seagoing") for passage in found), found)


class MayLeanTests(SimpleTestCase):
    """A question that hardly names a subject is searched with earlier ones, which have less weight."""

    def test_a_question_with_few_content_words_may_refer_to_earlier_ones(self):
        for question in (
            "How much per year?",
            "What is not covered?",
            "What is the deadline?",
            "Which form do I need?",
            "Wie hoch ist der Betrag?",
            "Was ist die Frist?",
        ):
            with self.subTest(question=question):
                self.assertTrue(may_lean_on_earlier(question))

    def test_a_question_that_names_its_subject_does_not_refer_to_earlier_ones(self):
        for question in (
            "How many days of annual leave do office staff get?",
            "What does the Lighthouse VPN do?",
            "Where is form FN-05?",
            "Wie viel Urlaub bekommen Teilzeitkräfte im Hafenbüro?",
        ):
            with self.subTest(question=question):
                self.assertFalse(may_lean_on_earlier(question))

    def test_the_context_begins_with_the_last_question_that_names_its_subject(self):
        asked = [
            "How are travel expenses of a business trip paid back?",
            "How many days of annual leave do office staff get?",
            "What is the deadline?",
            "And who approves it?",
        ]
        turns = [EarlierMessage("user", question) for question in asked]
        self.assertEqual(context_of("Which form do I need?", turns[:2]), asked[1])
        self.assertEqual(context_of("Which form do I need?", turns), f"{asked[1]} {asked[2]}")
        # A question that depends on “What is the deadline?” is searched together with it.
        self.assertEqual(context_of(asked[3], turns[:3]), asked[1])
        self.assertEqual(context_of("How is overtime of part-time crews paid?", turns), "")
        self.assertEqual(context_of("Which form do I need?", []), "")
