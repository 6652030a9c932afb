"""What each override does, from the request to the answer, its thoughts and the model's prompt."""

import json
from uuid import uuid4

from django.contrib.auth.models import Permission

from chat.llm.chat_model import (
    instructions,
    messages,
)
from chat.models import JournalEntry, Run
from chat.tests.override_case import OverrideTestCase
from chatsite.db.threads import in_database
from ingestion.tests.factories import make_document, make_user

FACT = "Five days of leave may be carried over until 31 March."
LONG = f"The office is open from eight. {FACT} The canteen serves soup on Mondays. Nobody counts the spoons."


class SearchOverrideTests(OverrideTestCase):
    def setUp(self):
        super().setUp()
        self.open = make_document("open.md", [FACT], everyone=True, category="handbook")
        make_document("named.md", [f"{FACT} Really."], users=[self.user], category="letters")
        make_document("team.md", [f"{FACT} For the team."], groups=[self.group])
        self.closed = make_document("secret.md", [f"{FACT} Secret."], users=[make_user("board")])

    async def test_top_limits_the_passages(self):
        context = await self.ask(top=2)
        self.assertEqual((len(self.found(context)), len(context["data_points"]["text"])), (2, 2))
        self.assertEqual((len(self.prompt.sources), self.props(context)["top"]), (2, 2))

    async def test_the_retrieval_mode_selects_the_searches(self):
        for mode, has_vector in (("hybrid", True), ("text", False), ("vectors", True)):
            props = self.props(await self.ask(retrieval_mode=mode))
            self.assertEqual((props["retrieval_mode"], props["has_vector"]), (mode, has_vector))

    async def test_the_temperature_reaches_the_model(self):
        context = await self.ask(temperature=1.5)
        self.assertEqual(self.prompt.temperature, 1.5)
        self.assertEqual(self.step(context, "Prompt")["props"]["temperature"], 1.5)

    async def test_follow_up_questions_come_when_asked_for(self):
        self.assertEqual(
            (await self.ask(suggest_followup_questions=True))["followup_questions"], ["And then?"]
        )
        self.assertNotIn("followup_questions", await self.ask(suggest_followup_questions=False))

    async def test_categories_narrow_the_search_and_are_reported(self):
        context = await self.ask(include_category="letters")
        self.assertEqual(self.found(context), ["named.md"])
        self.assertEqual(self.props(context)["filter"], "category is “letters”")
        self.assertNotIn("named.md", self.found(await self.ask(exclude_category="letters")))

    async def test_a_scope_narrows_the_search_and_is_reported_without_names(self):
        for scope, names, told in (
            ("category:letters", ["named.md"], "category is “letters”"),
            ("own", [], "added by the caller"),
            (f"document:{self.open.public_id}", ["open.md"], "one of 1 chosen"),
        ):
            context = await self.ask(scope=scope)
            self.assertEqual(self.found(context), names)
            self.assertEqual((self.props(context)["filter"], self.props(context)["scope"]), (told, scope))
        self.assertEqual(len(self.found(await self.ask(scope="all"))), 3)

    async def test_a_scope_of_closed_documents_finds_nothing_like_an_unknown_one(self):
        found = [await self.ask(scope=f"document:{each}") for each in (self.closed.public_id, uuid4())]
        self.assertEqual([self.found(context) for context in found], [[], []])
        self.assertEqual(self.props(found[0])["filter"], self.props(found[1])["filter"])

    async def test_a_minimum_score_leaves_out_lower_passages(self):
        best = self.step(await self.ask(), "Results")["description"][0]["score"]
        context = await self.ask(minimum_search_score=best)
        scores = [result["score"] for result in self.step(context, "Results")["description"]]
        self.assertEqual(set(scores), {best})
        self.assertEqual(self.props(context)["minimum_search_score"], best)
        self.assertEqual(self.found(await self.ask(minimum_search_score=1)), [])

    async def test_the_person_filter_keeps_documents_shared_by_name(self):
        context = await self.ask(use_oid_security_filter=True)
        self.assertEqual(self.found(context), ["named.md"])
        self.assertEqual(self.props(context)["filter"], "given to the caller")

    async def test_the_group_filter_keeps_documents_shared_with_a_group(self):
        context = await self.ask(use_groups_security_filter=True)
        self.assertEqual(self.found(context), ["team.md"])
        self.assertEqual(self.props(context)["filter"], "given to a group of the caller")

    async def test_both_filters_give_the_union_of_readable_documents(self):
        context = await self.ask(use_oid_security_filter=True, use_groups_security_filter=True)
        self.assertEqual(set(self.found(context)), {"named.md", "team.md"})
        self.assertEqual(len(self.found(await self.ask(top=50))), 3)

    async def test_vectors_of_images_are_replaced_by_text_vectors_with_a_note(self):
        context = await self.ask(vector_fields=["imageEmbedding"], retrieval_mode="vectors")
        self.assertEqual(len(self.found(context)), 3)
        self.assertIn("searched instead", self.step(context, "Vector fields")["description"])
        both = await self.ask(vector_fields=["embedding", "imageEmbedding"])
        self.assertIn("no vectors of images", self.step(both, "Vector fields")["description"])
        self.assertIsNone(self.step(await self.ask(vector_fields=["embedding"]), "Vector fields"))

    async def test_without_vector_fields_only_words_are_searched(self):
        context = await self.ask(vector_fields=[])
        self.assertFalse(self.props(context)["has_vector"])
        self.assertIn("words alone", self.step(context, "Vector fields")["description"])

    async def test_unknown_overrides_are_reported(self):
        context = await self.ask(speed=9, use_gpt4v=False, gpt4v_input="textAndImages")
        self.assertEqual(self.step(context, "Overrides without effect")["description"], ["speed"])

    async def test_a_minimum_for_a_missing_ranker_is_reported(self):
        context = await self.ask(minimum_reranker_score=2)
        self.assertEqual(
            self.step(context, "Overrides without effect")["description"], ["minimum_reranker_score"]
        )
        self.assertIsNone(self.step(await self.ask(minimum_reranker_score=0), "Overrides without effect"))

    async def test_images_from_a_model_that_reads_text_are_refused_and_nothing_is_stored(self):
        await self.refused(400, "use_gpt4v", use_gpt4v=True)
        await self.refused(400, "use_gpt4v", use_gpt4v=True, gpt4v_input="images")
        self.assertEqual(self.model.prompts, [])


class CaptionTests(OverrideTestCase):
    def setUp(self):
        super().setUp()
        make_document("guide.md", [LONG], everyone=True)

    async def test_captions_replace_the_passage_everywhere(self):
        context = await self.ask(semantic_captions=True)
        self.assertEqual(context["data_points"]["text"], [f"guide.md: {FACT}"])
        (result,) = self.step(context, "Results")["description"]
        self.assertEqual(result["content"], LONG)
        (caption,) = result["captions"]
        self.assertEqual((caption["text"], caption["additional_properties"]), (FACT, {}))
        self.assertIn("<em>days</em> of <em>leave</em>", caption["highlights"])
        self.assertTrue(self.props(context)["use_semantic_captions"])
        self.assertIn(f"guide.md: {FACT}", self.step(context, "Prompt")["description"][-1])

    async def test_the_model_gets_only_the_captions(self):
        await self.ask(semantic_captions=True)
        content = messages(self.prompt)[-1]["content"]
        self.assertIn(FACT, content)
        self.assertNotIn("soup", content)

    async def test_without_captions_there_are_none(self):
        context = await self.ask(semantic_captions=False)
        self.assertEqual(self.step(context, "Results")["description"][0]["captions"], [])
        self.assertIn("soup", context["data_points"]["text"][0])

    async def test_highlights_are_harmless_as_html(self):
        text = "Leave <script>alert(1)</script> may be carried over days."
        await in_database(make_document, "html.md", [text], everyone=True)
        context = await self.ask(semantic_captions=True, top=10)
        highlights = json.dumps(self.step(context, "Results")["description"])
        self.assertIn("&lt;script&gt;", highlights)
        self.assertNotIn("<em><script>", highlights)

    async def test_a_replayed_answer_has_its_captions(self):
        first = await self.post(semantic_captions=True, key="once")
        await in_database(JournalEntry.objects.all().delete)
        again = await self.post(semantic_captions=True, key="once")
        self.assertEqual(again.json(), first.json())
        self.assertEqual(len(self.model.prompts), 1)


class PromptTemplateTests(OverrideTestCase):
    def setUp(self):
        super().setUp()
        make_document("guide.md", [FACT], everyone=True)

    def allow(self):
        self.user.user_permissions.add(Permission.objects.get(codename="set_prompt"))

    def system(self):
        return messages(self.prompt)[0]["content"]

    async def test_without_the_permission_a_prompt_template_is_refused_and_nothing_is_stored(self):
        await self.refused(403, "prompt_template", prompt_template="Be rude.")
        await self.refused(403, "prompt_template", prompt_template=">>> Be rude.")
        self.assertFalse(await in_database(Run.objects.exists))

    async def test_an_empty_prompt_template_needs_no_permission(self):
        await self.ask(prompt_template="")
        self.assertEqual(self.system(), instructions("answer"))

    async def test_a_prompt_template_replaces_the_prompt(self):
        await in_database(self.allow)
        context = await self.ask(prompt_template="Answer as a poem.")
        self.assertEqual(self.system(), "Answer as a poem.")
        step = self.step(context, "Prompt")
        self.assertEqual(step["description"][0], "{'role': 'system', 'content': 'Answer as a poem.'}")
        self.assertTrue(step["props"]["prompt_template"])

    async def test_a_prompt_template_with_the_prefix_is_appended(self):
        await in_database(self.allow)
        await self.ask(prompt_template=">>> Answer as a poem.")
        self.assertEqual(self.system(), f"{instructions('answer')}\n\nAnswer as a poem.")

    async def test_superusers_may_set_a_prompt_template(self):
        self.user.is_superuser = True
        await in_database(self.user.save)
        await self.ask(prompt_template="Brief.")
        self.assertEqual(self.system(), "Brief.")


class RankerTests(OverrideTestCase):
    def setUp(self):
        super().setUp()
        for number in range(4):
            make_document(f"{number}.md", [f"{FACT} Rule {number} of leave."], everyone=True)

    async def test_the_model_s_grades_decide_the_order_of_a_deeper_list(self):
        plain = self.found(await self.ask(top=4))
        self.model.grades = {0: 1, 1: 0, 2: 4, 3: 3}
        context = await self.ask(semantic_ranker=True, top=2)
        self.assertEqual(self.found(context), [plain[2], plain[3]])
        results = self.step(context, "Results")["description"]
        self.assertEqual([result["reranker_score"] for result in results], [4, 3])
        self.assertTrue(self.props(context)["use_semantic_ranker"])
        step = self.step(context, "Semantic ranker")
        self.assertEqual((step["props"]["ranker"], step["props"]["candidates"]), ("scripted", 4))
        self.assertEqual([source.rank for source in self.prompt.sources], [1, 2])

    async def test_passages_below_the_minimum_are_left_out(self):
        self.model.grades = {0: 1, 1: 2, 2: 4, 3: 3}
        context = await self.ask(semantic_ranker=True, minimum_reranker_score=2.5)
        scores = [result["reranker_score"] for result in self.step(context, "Results")["description"]]
        self.assertEqual(scores, [4, 3])

    async def test_if_the_ranker_fails_the_order_of_the_search_is_kept_with_a_note(self):
        plain = self.found(await self.ask())
        for grades in ({}, {3: 4}):
            self.model.grades = grades
            context = await self.ask(semantic_ranker=True, minimum_reranker_score=1)
            self.assertEqual(self.found(context), plain)
            told = self.step(context, "Semantic ranker")["description"]
            self.assertIn("did not answer", told)
            self.assertIn("“minimum_reranker_score” has no effect", told)
            self.assertNotIn("reranker_score", self.step(context, "Results")["description"][0])

    async def test_without_a_model_a_missing_ranker_is_reported(self):
        self.model.grades = None
        context = await self.ask(semantic_ranker=True)
        self.assertIn("no ranker", self.step(context, "Semantic ranker")["description"])
        self.assertEqual(len(self.found(context)), 4)

    async def test_nothing_found_needs_no_ranker(self):
        self.model.grades = {}
        context = await self.ask(semantic_ranker=True, include_category="none of these")
        self.assertEqual(self.found(context), [])
