"""Reading the overrides: each value has bounds, and an error names the override at fault."""

from django.test import SimpleTestCase

from chat.protocols import ChatCompletions
from chat.protocols.request_body import (
    OPTIONS,
    PAGE_SWITCHES,
    options,
)
from chat.requests import InvalidRequest, Options

DOCUMENT = "0190c0de-0000-7000-8000-000000000000"
WRONG = {
    "temperature": (-0.1, 2.1, "1", True, []),
    "top": (0, 51, 2.5, "3", True),
    "retrieval_mode": ("semantic", 1, ["text"]),
    "semantic_ranker": (1, "true"),
    "semantic_captions": (0, "false"),
    "suggest_followup_questions": ("yes", 1),
    "use_oid_security_filter": (1, "true"),
    "use_groups_security_filter": (1, "true"),
    "vector_fields": ("embedding", ["textEmbeddingOnly"], ["text"], [1], {}),
    "use_gpt4v": (1, "true"),
    "use_multimodal_answering": (1, "true"),
    "gpt4v_input": ("texts", True),
    "prompt_template": (1, ["x"], "x" * 10_001, "a\x00b"),
    "include_category": (1, [], "x" * 101, "a\x00b"),
    "exclude_category": (1, [], "x" * 101, "a\x00b"),
    "scope": (
        1,
        [],
        "",
        "everything",
        "own:",
        "folder:",
        "category:a\x00b",
        "category:\ud800",
        "folder:" + "x" * 600,
        "document:",
        "document:7",
        f"document:{DOCUMENT},",
        "document:" + ",".join([DOCUMENT] * 16),
    ),
    "minimum_search_score": (-1, 1.1, "0", True),
    "minimum_reranker_score": (-1, 4.1, "0", True),
}
RIGHT = {
    "temperature": (0, 2, 0.7),
    "top": (1, 50),
    "retrieval_mode": ("hybrid", "text", "vectors"),
    "vector_fields": (["embedding"], ["imageEmbedding"], ["embedding", "imageEmbedding"], []),
    "gpt4v_input": ("text", "textAndImages", "images"),
    "prompt_template": ("x" * 10_000, ">>> Be brief.", "", None),
    "include_category": ("hr", "", None),
    "exclude_category": ("hr", "", None),
    "scope": (
        "all",
        "own",
        "folder:a/b",
        "category:HR",
        f"document:{DOCUMENT}",
        f"document:{DOCUMENT},{DOCUMENT}",
        None,
    ),
    "minimum_search_score": (0, 1),
    "minimum_reranker_score": (0, 4),
}


class ReadingTests(SimpleTestCase):
    def refused(self, overrides):
        with self.assertRaises(InvalidRequest) as caught:
            options(overrides)
        return caught.exception

    def test_invalid_overrides_are_refused_by_name(self):
        for name, values in WRONG.items():
            for value in values:
                with self.subTest(name=name, value=str(value)[:20]):
                    error = self.refused({name: value})
                    self.assertEqual((error.status, error.member), (400, f"context.overrides.{name}"))
                    self.assertIn(f"“context.overrides.{name}”", error.message)

    def test_every_known_override_has_invalid_values_in_this_test(self):
        self.assertEqual(WRONG.keys(), OPTIONS.keys() | set(PAGE_SWITCHES))

    def test_the_bounds_themselves_are_accepted(self):
        for name, values in RIGHT.items():
            for value in values:
                with self.subTest(name=name, value=str(value)[:20]):
                    self.assertEqual(options({name: value}).unknown, ())

    def test_without_overrides_only_follow_up_questions_are_off(self):
        self.assertEqual(options({}), Options(followups=False))

    def test_null_stands_for_a_member_that_was_not_sent(self):
        for name in WRONG:
            with self.subTest(name):
                self.assertEqual(options({name: None}), options({}))

    def test_the_words_that_front_ends_send_for_vector_fields_are_read(self):
        for word, fields in (
            ("textEmbeddingOnly", "text"),
            ("imageEmbeddingOnly", "pages"),
            ("textAndImageEmbeddings", "both"),
        ):
            self.assertEqual(options({"vector_fields": word}).vector_fields, fields)

    def test_the_name_of_2026_also_requests_images(self):
        self.assertEqual(options({"use_multimodal_answering": True}).pages, "textAndImages")
        self.assertEqual(
            options({"use_multimodal_answering": True, "use_gpt4v": False}).pages, "textAndImages"
        )

    def test_images_need_use_gpt4v(self):
        self.assertEqual(options({"gpt4v_input": "images"}).pages, "")
        self.assertEqual(options({"use_gpt4v": False, "gpt4v_input": "textAndImages"}).pages, "")

    def test_the_input_text_requests_no_images(self):
        self.assertEqual(options({"use_gpt4v": True, "gpt4v_input": "text"}).pages, "")

    def test_text_and_images_are_the_default(self):
        self.assertEqual(options({"use_gpt4v": True}).pages, "textAndImages")
        self.assertEqual(options({"gpt4v_input": "images", "use_gpt4v": True}).pages, "images")

    def test_vectors_alone_need_a_field(self):
        error = self.refused({"vector_fields": [], "retrieval_mode": "vectors"})
        self.assertEqual(error.member, "context.overrides.vector_fields")

    def test_unknown_overrides_are_kept_by_name_up_to_a_limit(self):
        told = options({"speed\x00": 1} | {f"{'x' * 200}{number}": 1 for number in range(100)}).unknown
        self.assertEqual((told[0], len(told), max(map(len, told))), ("speed\ufffd", 50, 100))

    def test_errors_give_the_path_of_a_flat_override(self):
        body = {"messages": [{"role": "user", "content": "x"}], "stream": False, "context": {"top": 99}}
        with self.assertRaises(InvalidRequest) as caught:
            ChatCompletions().parse(body)
        self.assertEqual(caught.exception.member, "context.top")
