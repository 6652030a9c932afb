"""Messages saved by Outlook, and messages, calendars and other things inside of messages."""

import tempfile
from pathlib import Path
from unittest import mock

from django.test import SimpleTestCase

from ingestion.parsing.containers import NOT_A_FORMAT
from ingestion.parsing.readers import mail, outlook
from ingestion.parsing.sections import Limits
from ingestion.tests import building
from ingestion.tests.parsing.test_reading_formats import reading

SUBJECT, SENDER, BODY = "0037", "0C1A", "1000"
LOCALE, CODE_PAGE = 0x3FF1_0003, 0x3FFD_0003
PLAN = {SUBJECT: "Plan", SENDER: "Ann", BODY: "The ferry leaves at nine."}


def parts(data):
    """The attachments of a message saved by Outlook, by name."""
    found = mock.Mock(left_out=[])
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(data)
        outlook.read(Path(file.name), Limits(100, 100_000, 1_000_000, with_parts=True), found)
    return {call.args[0]: b"".join(call.args[1]) for call in found.add.call_args_list}


class OutlookTests(SimpleTestCase):
    def test_a_message_of_outlook_is_read_with_its_attachments(self):
        found = reading("a.msg", building.outlook(PLAN, ("plan.txt", b"Boats."), numbers=[(0x0039_0040, 0)]))
        self.assertEqual(
            [(section.anchor, section.text) for section in found.sections],
            [
                ("header", "From: Ann\nDate: 1601-01-01 00:00+00:00\nSubject: Plan\nAttachments: plan.txt"),
                ("message", "The ferry leaves at nine."),
            ],
        )
        self.assertEqual([part.path for part in found.parts], ["plan.txt"])

    def test_a_message_attached_to_one_of_outlook_becomes_a_document_with_its_own_attachments(self):
        inner = {
            SUBJECT: "F\u00e4hrplan f\u00fcr alle H\u00e4fen, neu",
            SENDER: "Bo",
            BODY: "At ten. \u2013 Bo",
        }
        deeper = {SUBJECT: "Re: Plan", BODY: "At eleven."}
        data = building.outlook(PLAN, inner | {"attached": [("ports.txt", b"Ellery"), deeper]})
        attached = parts(data)
        self.assertEqual(list(attached), [f"{inner[SUBJECT]}.eml"])
        found = reading("a.eml", attached[f"{inner[SUBJECT]}.eml"])
        self.assertEqual(found.title, inner[SUBJECT])
        self.assertIn("From: Bo", found.sections[0].text)
        self.assertEqual(found.sections[1].text, inner[BODY])
        self.assertEqual([part.path for part in found.parts], ["ports.txt", "Re: Plan.eml"])

    def test_messages_within_messages_of_outlook_end_at_some_depth(self):
        message = {SUBJECT: "Last", BODY: "Words."}
        for number in range(8):
            message = {SUBJECT: str(number), BODY: "Words.", "attached": [message]}
        attached = parts(building.outlook(PLAN, message))
        depth = 0
        while attached:
            depth += 1
            (data,) = attached.values()
            found = mock.Mock(left_out=[])
            with tempfile.NamedTemporaryFile() as file:
                Path(file.name).write_bytes(data)
                mail.read(Path(file.name), Limits(100, 100_000, 1_000_000, with_parts=True), found)
            attached = {call.args[0]: b"".join(call.args[1]) for call in found.add.call_args_list}
        self.assertEqual(depth, outlook.MAX_DEPTH)

    def test_an_embedded_object_is_left_out_by_name(self):
        streams = building.ole(
            {
                "__properties_version1.0": bytes(32),
                "__substg1.0_0037001F": "Plan".encode("utf-16-le"),
                "__attach_version1.0_#00000000/__substg1.0_3001001F": "Drawing".encode("utf-16-le"),
                "__attach_version1.0_#00000000/__substg1.0_3701000D/CONTENTS": b"x",
            }
        )
        self.assertEqual(reading("a.msg", streams).left_out, (("Drawing", NOT_A_FORMAT),))

    def test_texts_of_old_messages_are_in_the_code_page_of_their_language(self):
        text = "\u041f\u043b\u0430\u043d"
        for numbers in ([(LOCALE, 1049)], [(CODE_PAGE, 1251), (LOCALE, 1031)]):
            data = building.outlook({SUBJECT: text.encode("cp1251"), BODY: b"x"}, numbers=numbers)
            self.assertEqual(reading("a.msg", data).title, text)
        data = building.outlook(
            {SUBJECT: "F\u00e4hre".encode("cp1252"), BODY: b"x"}, numbers=[(LOCALE, 1031)]
        )
        self.assertEqual(reading("a.msg", data).title, "F\u00e4hre")
