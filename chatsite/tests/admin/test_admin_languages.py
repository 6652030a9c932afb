"""Every page of the admin in a pseudo-language, with rows, with refused forms and with messages."""

import re
from datetime import timedelta
from itertools import product

import pytest
from asgiref.sync import AsyncSingleThreadContext
from django.contrib import admin
from django.contrib.auth.models import Group
from django.db import connection
from django.test import TestCase
from django.urls import reverse
from django.utils import timezone

from chat.evaluation.models import ProofQuestion, ProofResult, ProofRun
from chat.models import (
    Agent,
    MessageAllowance,
    Retention,
    Run,
    SiteTexts,
    StartingQuestion,
    VerifiedAnswer,
)
from chat.tests.conversations import LABEL, answered
from chatsite.accounts import staff_access
from chatsite.accounts.models import (
    ApiKey,
    AuditEntry,
    ExternalIdentity,
    GroupMapping,
    User,
    WebhookDelivery,
    WebhookEndpoint,
)
from chatsite.tests.plugins.seed import sample
from chatsite.tests.pseudo_language import PSEUDO, Words, offering_pseudo
from chatsite.tests.routes import admin_addresses
from history.models import Feedback, Share
from ingestion.access.lists import Audience, access_list_for
from ingestion.bulk import changes
from ingestion.bulk.models import BulkChange, BulkItem
from ingestion.models import Document, HouseWord
from ingestion.tests.factories import make_document, make_user

# Ids, dates, Django's own images, texts that are data, and names of formats and scopes.
NOT_OURS = re.compile(
    r"^[0-9a-f-]{32,36}$|^(› |qx )?[0-9a-f]{8}-[0-9a-f-]{27}|^(› )?chs_|^alt=(Search|True|False)$"
    r"|^[A-Z][a-z]+\.? \d+, \d{4}|guide\.md#leave|^chat, search|^(document\.ready|english|sub|text/markdown)$"
    r"|^You answer questions of an organisation|^\{APPEND\}"
)
REASON = "The file has 1,204 pages; at most 1,000 are read."
NO_PAGES = r"jsi18n|autocomplete|csv|figures|access_names|view_on_site|log(in|out)|password_change(_done)?$"


@pytest.mark.slow
class AdminLanguageTests(TestCase):
    maxDiff = None

    def setUp(self):
        self.root = User.objects.create_superuser("qxroot", first_name="qxa", last_name="qxb")
        self.client.force_login(self.root)
        self.enterContext(AsyncSingleThreadContext())  # one thread for all requests
        self.enterContext(offering_pseudo())
        self.make_rows()

    def make_rows(self):
        """Create at least one row of each model, in each of its states, but no job.

        The pages of a job are procrastinate's own, in English. Other tests may have left jobs, because a
        flush empties the tables of managed models only.
        """
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM procrastinate_jobs")
        self.ann = make_user("qxann", groups=["qxcrew"])
        self.crew = Group.objects.get(name="qxcrew")
        self.make_documents()
        self.make_conversations()
        self.make_accounts()
        self.make_texts()
        self.make_verified_answers()
        self.make_proof_runs()
        self.make_bulk_changes()
        staff_access.begin(self.root, self.ann, self.conversation.pk, "qx qx qx qx")

    def make_documents(self):
        self.document = make_document(
            "qxguide.md", title="qxguide", owner=self.ann, everyone=True, folder="qx"
        )
        for status in Document.Status.values:
            make_document(f"qx{status}.md", title="qx", owner=self.root)
            Document.objects.filter(name=f"qx{status}.md").update(
                name=f"qx{len(status)}.md", status=status, reason=REASON, category="qx"
            )
        outdated = timezone.now() - timedelta(days=9)
        make_document("qxgroup.md", title="qx", owner=self.ann, groups=[self.crew], valid_until=outdated)

    def make_conversations(self):
        now, root = timezone.now(), self.root
        conversation, answer = answered(self.ann, self.document, question="qx?", title="qxtitle")
        self.conversation = conversation
        own, _ = answered(root, self.document, question="qx?", title="qxtitle")
        self.own = own
        for rating, shared in (("bad", True), ("good", False)):
            _, rated = answered(self.ann, self.document, question="qx?", title="qxtitle", text="qx")
            Feedback.objects.create(
                message=rated, rating=rating, comment="qx", shared=shared, wrong_sources=[LABEL],
                reasons=list(Feedback.Reason.values),
            )  # fmt: skip
        lists = [
            Audience(everyone=True),
            Audience(guests=True, everyone=True),
            Audience(user_ids=frozenset({root.pk})),
        ]
        for number, audience in enumerate(lists):
            Share.objects.create(
                conversation=conversation, up_to=1, access_list=access_list_for(audience, None),
                digest=f"{number}", answer=answer if number else None,
                revoked_at=now if number == 1 else None, expires_at=now if number == 2 else None,
            )  # fmt: skip
        Run.objects.create(
            owner=self.ann, conversation=conversation, question=answer, answer=answer, body_digest="qx"
        )

    def make_accounts(self):
        """Create keys, identities, webhooks, audit entries and allowances."""
        key, _ = ApiKey.objects.issue(self.ann, "qxkey")
        ApiKey.objects.issue(self.root, "", 0)
        ExternalIdentity.objects.create(user=self.ann, issuer="qx", subject="qx", claim="sub")
        GroupMapping.objects.create(issuer="qx", value="qx", group=self.crew)
        for state in WebhookDelivery.State.values:
            hook = WebhookEndpoint.objects.create(
                owner=self.ann, api_key=key, url="https://qx/", events=["document.ready"], secret="qx"
            )
            WebhookDelivery.objects.create(endpoint=hook, event="qx", data={}, state=state)
        for action in AuditEntry.Action.values:
            AuditEntry.objects.create(
                action=action, actor="qxroot", person="qxann", subject="Said in English"
            )
        for values in ({"user": self.ann, "messages": 5}, {"group": self.crew}, {}):
            MessageAllowance.objects.create(**values)
        for values in ({"group": self.crew, "files": 5}, {}):
            Retention.objects.create(**values)

    def make_texts(self):
        """Create agents, starting questions, texts of the site and glossary entries."""
        Agent.objects.all().delete()
        Agent.objects.create(name="qxagent", description="qx", instructions="qx")
        StartingQuestion.objects.create(text="qx")
        StartingQuestion.objects.create(text="qx", group=self.crew)
        SiteTexts.objects.create(name="qx", banner="qx", changed_by=self.root)
        SiteTexts.objects.create(name="qxb", banner="qx", welcome="qx", logo=b"1")
        for values in (
            {"term": "qx", "meaning": "qx"},
            {"term": "qxb", "synonyms": "qx", "kind": "everyday"},
        ):
            HouseWord.objects.create(**values)
        for groups in ([], [self.crew]):
            word = HouseWord.objects.create(term="qxc", meaning="qx", restricted=True)
            word.groups.set(groups)

    def make_verified_answers(self):
        until, root = timezone.localdate(), self.root
        for values in (
            {"owner": root},
            {"owner": root, "active": False, "valid_until": until + timedelta(days=99)},
            {"valid_until": until - timedelta(days=9), "citation_count": 1},
            {"owner": root, "citation_count": 2},
        ):
            row = VerifiedAnswer.objects.create(**{"text": "qx [1]", "valid_until": until} | values)
            row.groups.add(self.crew)
            row.questions.create(text="qx?")
            row.citations.create(document=self.document, words="qx", position=0, digest="qx", sha256="qx")

    def make_proof_runs(self):
        now, root = timezone.now(), self.root
        questions = [
            ProofQuestion.objects.create(text="qx1", document=self.document, place="qx", added_by=root),
            ProofQuestion.objects.create(text="qx2", wants_nothing=True),
            *(ProofQuestion.objects.create(text=f"qx3{origin[:2]}", origin=origin, added_by=root)
              for origin in ProofQuestion.Origin.values),
        ]  # fmt: skip
        self.runs = []
        for state in ProofRun.State.values:
            group = self.crew if state == "done" else None
            run = ProofRun.objects.create(
                started_by=root,
                group=group,
                note="qx",
                state=state,
                ended_at=now + timedelta(seconds=len(self.runs)),
            )
            self.runs.append(run)
            outcomes = [*ProofResult.Outcome.values]
            for number, question in enumerate(questions):
                outcome = outcomes[(number + len(self.runs)) % len(outcomes)]
                ProofResult.objects.create(
                    run=run, question=question, asked=f"{question.pk}", wants_nothing=question.wants_nothing,
                    outcome=outcome, rank=number % 2, found=[self.document.pk, 0], statements=3, supported=2,
                )  # fmt: skip

    def make_bulk_changes(self):
        every = Document.objects.all()
        for kind in BulkChange.Kind.values:
            for state in BulkChange.State.values:
                change = changes.choose(self.root, every)
                BulkChange.objects.filter(pk=change.pk).update(
                    kind=kind if state != "chosen" else "",
                    state=state,
                    wanted={},
                    reason="",
                    finished_at=timezone.now() if state == "done" else None,
                )
        outcomes = BulkItem.Outcome.values
        for outcome, item in zip(outcomes, change.items.all(), strict=False):
            type(item).objects.filter(pk=item.pk).update(outcome=outcome)

    def left_out(self, path, data=None):
        headers = {"accept-language": PSEUDO}
        if data is None:
            response = self.client.get(path, headers=headers, follow=True)
        else:
            response = self.client.post(path, data, headers=headers, follow=True)
        page = response.content.decode()
        if "<html" not in page:
            return []
        assert re.search(r'lang="ar-xb"\s+dir="rtl"', page), path
        self.seen += 1
        return [words for words in Words(page).left_out if not NOT_OURS.search(words)]

    def collect(self, pages):
        """{untranslated text: the first page that has it}"""
        self.seen, found = 0, {}
        for each in pages:
            path, data = each if isinstance(each, tuple) else (each, None)
            for words in self.left_out(path, data):
                found.setdefault(words, f"{'POST' if data else 'GET'} {path}")
        return "\n".join(f"{words}  ({path})" for words, path in sorted(found.items()))

    def of_rows(self):
        for model in admin.site._registry:
            name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
            yield reverse(f"{name}_changelist")
            rows = [row.pk for row in model._default_manager.all()]
            for page, row in sample(product(("change", "delete", "history"), rows), one_in=2):
                yield reverse(f"{name}_{page}", args=[row])

    def test_lists_and_rows(self):
        self.assertEqual(self.collect(self.of_rows()), "")
        self.assertGreater(self.seen, 50)

    def test_other_pages(self):
        paths = [path for name, path in admin_addresses() if not re.search(NO_PAGES, name)]
        self.assertEqual(self.collect(paths), "")

    def test_forms_that_are_refused(self):
        self.assertEqual(self.collect(sample(self.refused(), one_in=2)), "")

    def refused(self):
        """Each form, sent empty and with invalid values."""
        for model in admin.site._registry:
            name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
            fields = [field.name for field in model._meta.get_fields()]
            fields += ["users", "groups", "new_logo", "days", "password1", "password2", "usable_password"]
            row = model._default_manager.first()
            formsets = {}
            for prefix in ("questions", "citations"):
                formsets |= {f"{prefix}-TOTAL_FORMS": 2, f"{prefix}-INITIAL_FORMS": 0}
                formsets |= {f"{prefix}-0-document": self.document.pk, f"{prefix}-0-words": "qxnothing"}
            for value in ("", "qx", "-1", "99999999999999"):
                sent = dict.fromkeys(fields, value) | formsets
                yield reverse(f"{name}_add"), sent
                if row:
                    yield reverse(f"{name}_change", args=[row.pk]), sent
            yield reverse(f"{name}_changelist"), {"action": "delete_selected"}
            for action in admin.site._registry[model].actions or ():
                yield reverse(f"{name}_changelist"), {"action": action}
        for name, path in admin_addresses():
            if not re.search(NO_PAGES + "|_(add|change|delete|changelist|history)$", name):
                yield path, {}
                yield (
                    path,
                    {
                        "person": "qx",
                        "document": "qx",
                        "question": "qx",
                        "questions": "qx",
                        "prompt": "{APPEND}",
                    },
                )
                yield path, {"group": "qx", "reason": ""}
