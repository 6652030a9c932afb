"""The requests of front ends before they show anything."""

from django.test import SimpleTestCase, TestCase, override_settings

from chatsite.accounts.models import User


class BootTests(SimpleTestCase):
    def test_there_is_no_login_of_the_front_ends_own(self):
        told = self.client.get("/auth_setup").json()
        self.assertEqual((told["useLogin"], told["requireAccessControl"]), (False, False))
        self.assertEqual(set(told["msalConfig"]), {"auth", "cache"})

    def test_a_model_alone_is_no_ranker_and_reads_no_images(self):
        for model in ("", "m"):
            with override_settings(CHAT_MODEL=model, CHAT_MODEL_READS_IMAGES=False, RERANK_MODEL=""):
                told = self.client.get("/config").json()
            self.assertTrue(told["streamingEnabled"] and told["showVectorOption"])
            for feature in ("showSemanticRankerOption", "showGPT4VOptions", "showMultimodalOptions"):
                self.assertIs(told[feature], False, feature)

    def test_features_follow_the_settings(self):
        for values, feature in (
            ({"RERANK_MODEL": "r"}, "showSemanticRankerOption"),
            ({"CHAT_MODEL_READS_IMAGES": True}, "showGPT4VOptions"),
            ({"CHAT_MODEL_READS_IMAGES": True}, "showMultimodalOptions"),
        ):
            with override_settings(**values):
                self.assertIs(self.client.get("/config").json()[feature], True, feature)

    def test_unsupported_features_are_off(self):
        told = self.client.get("/config").json()
        for feature in (
            "showUserUpload", "showSpeechInput", "showSpeechOutputAzure", "showChatHistoryCosmos",
            "showAgenticRetrievalOption", "showQueryRewritingOption", "showReasoningEffortOption",
            "webSourceEnabled", "sharepointSourceEnabled",
        ):  # fmt: skip
            self.assertIs(told[feature], False, feature)

    def test_only_get_requests_are_answered(self):
        for path in ("/auth_setup", "/config"):
            self.assertEqual(self.client.post(path).status_code, 405)


@override_settings(LOGIN_REQUIRED=False)
class GuestTests(TestCase):
    def test_these_requests_create_no_guest(self):
        for path in ("/auth_setup", "/config"):
            self.assertFalse(self.client.get(path).cookies)
        self.assertFalse(User.objects.exists())
