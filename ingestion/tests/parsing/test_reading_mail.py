"""Messages saved by Outlook, and messages, calendars and other things inside of messages."""

import base64
import codecs
import quopri
import struct
import tempfile
from email.message import EmailMessage
from pathlib import Path
from unittest import mock

from django.test import SimpleTestCase

from ingestion.parsing.containers import NOT_A_FORMAT
from ingestion.parsing.readers import icalendar, mail, outlook
from ingestion.parsing.readers.compressed_rtf import compressed_text
from ingestion.parsing.sections import Limits, Unreadable
from ingestion.tests import building
from ingestion.tests.parsing.test_reading_formats import reading

SUBJECT, SENDER, BODY, RICH_TEXT = "0037", "0C1A", "1000", "10090102"
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
    def test_an_outlook_message_is_read_with_its_attachments(self):
        found = reading("a.msg", building.outlook(PLAN, ("plan.txt", b"Boats."), numbers=[(0x0039_0040, 0)]))
        self.assertEqual(
            [(section.anchor, section.text) for section in found.sections],
            [
                ("header", "From: Ann\nDate: 1601-01-01 00:00+00:00\nSubject: Plan\nAttachments: plan.txt"),
                ("message", "The ferry leaves at nine."),
            ],
        )
        self.assertEqual([part.path for part in found.parts], ["plan.txt"])

    def test_a_message_attached_to_an_outlook_message_is_a_document_with_its_own_attachments(self):
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

    def test_nested_outlook_messages_are_read_to_a_maximum_depth(self):
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


INVITATION = """BEGIN:VCALENDAR\r
METHOD:REQUEST\r
BEGIN:VTIMEZONE\r
TZID:Europe/Berlin\r
BEGIN:STANDARD\r
DTSTART:16010101T030000\r
END:STANDARD\r
END:VTIMEZONE\r
BEGIN:VEVENT\r
ORGANIZER;CN="Berg, Ada":mailto:ada@example.org\r
ATTENDEE;ROLE=REQ-PARTICIPANT;CN=Bo:MAILTO:bo@example.org\r
ATTENDEE:mailto:cy@example.org\r
SUMMARY;LANGUAGE=en:Winter timetable\\, first dr\r
 aft\r
DTSTART;TZID=Europe/Berlin:20260302T093000\r
DTEND;TZID=Europe/Berlin:20260302T103000\r
RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE;UNTIL=20260630T220000Z\r
LOCATION:Pier 3\r
DESCRIPTION:Bring the fares.\\nAnd tea.\r
BEGIN:VALARM\r
DESCRIPTION:Reminder\r
END:VALARM\r
END:VEVENT\r
END:VCALENDAR\r
"""
EVENT = """Event: Winter timetable, first draft
When: 2026-03-02 09:30 \u2013 10:30 (Europe/Berlin)
Repeats: weekly, every 2, MO, WE, until 2026-06-30 22:00
Where: Pier 3
Organizer: Berg, Ada <ada@example.org>
Participants: Bo <bo@example.org>, cy@example.org
Bring the fares.
And tea."""


def mime(*attachments, text="See below."):
    """A message with attachments as (name, type, bytes)."""
    whole = EmailMessage()
    whole["From"], whole["Subject"] = "ada@example.org", "Timetable"
    whole.set_content(text)
    for name, kind, data in attachments:
        whole.add_attachment(data, *kind.split("/"), filename=name)
    return whole.as_bytes()


class InvitationTests(SimpleTestCase):
    def event(self, calendar):
        found = reading("a.eml", mime(("invite.ics", "text/calendar", calendar.encode())))
        return {section.anchor: section.text for section in found.sections}.get("event")

    def test_an_invitation_is_read_once_as_part_of_its_message(self):
        attached = ("invite.ics", "application/ics", INVITATION.encode())
        found = reading("a.eml", mime(attached, ("other.ics", "text/calendar", INVITATION.encode())))
        self.assertEqual(
            [(section.anchor, section.text) for section in found.sections[1:]],
            [("event", EVENT), ("message", "See below.")],
        )
        self.assertEqual((found.parts, found.left_out), ((), ()))

    def test_an_event_of_whole_days_ends_on_its_last_day(self):
        for start, end, shown in (
            ("20260302", "20260305", "2026-03-02 \u2013 2026-03-04"),
            ("20260302", "20260303", "2026-03-02"),
            ("20260302", "20260302", "2026-03-02"),
            ("20260302T080000Z", "20260303T090000Z", "2026-03-02 08:00 \u2013 2026-03-03 09:00 (UTC)"),
            ("20260302", "00010101", "2026-03-02"),
        ):
            event = f"BEGIN:VEVENT\nSUMMARY:Fair\nDTSTART:{start}\nDTEND:{end}\nEND:VEVENT\n"
            self.assertEqual(self.event(event), f"Event: Fair\nWhen: {shown}")

    def test_an_event_with_a_duration_has_an_end(self):
        for start, duration, shown in (
            ("20260302T090000", "PT1H30M", "2026-03-02 09:00 \u2013 10:30"),
            ("20260302T230000Z", "PT2H", "2026-03-02 23:00 \u2013 2026-03-03 01:00 (UTC)"),
            ("20260302", "P2D", "2026-03-02 \u2013 2026-03-03"),
            ("20260302", "P1W", "2026-03-02 \u2013 2026-03-08"),
            ("20260302", "P1D", "2026-03-02"),
            ("20260302T090000", "-PT5M", "2026-03-02 09:00"),
            ("99991231T230000", "PT2H", "9999-12-31 23:00"),
            ("00000000", "P2D", "0000-00-00"),
        ):
            event = f"BEGIN:VEVENT\nDTSTART:{start}\nDURATION:{duration}\nEND:VEVENT\n"
            self.assertEqual(self.event(event), f"When: {shown}")

    def test_a_repetition_names_the_position_of_its_days(self):
        for rule, shown in (
            ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=1", "monthly, 1st MO"),
            ("FREQ=MONTHLY;BYDAY=+2MO,-1FR", "monthly, 2nd MO, last FR"),
            ("FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1", "monthly, last of MO, TU"),
            ("FREQ=MONTHLY;BYDAY=TH;BYSETPOS=3,-2", "monthly, 3rd and 2nd to last TH"),
            ("FREQ=MONTHLY;BYMONTHDAY=-1;BYMONTH=3,6", "monthly, -1, in month 3, 6"),
            ("FREQ=YEARLY;BYDAY=MO;BYMONTH=3;BYSETPOS=4", "yearly, 4th MO, in month 3"),
            ("FREQ=YEARLY;BYDAY=11SU", "yearly, 11th SU"),
            ("FREQ=DAILY;BYSETPOS=x", "daily"),
        ):
            event = f"BEGIN:VEVENT\nRRULE:{rule}\nEND:VEVENT\n"
            self.assertEqual(self.event(event), f"Repeats: {shown}")

    def test_a_cancelled_event_says_so(self):
        event = "METHOD:CANCEL\nBEGIN:VEVENT\nSUMMARY:Fair\nEND:VEVENT\n"
        self.assertEqual(self.event(event), "Event: Fair\nStatus: cancelled")

    def test_each_event_of_a_file_with_a_calendar_is_a_section(self):
        events = (
            "BEGIN:VEVENT\nSUMMARY:Fair\nDTSTART:20260302\nDESCRIPTION:Stalls open at ten.\nEND:VEVENT\n"
            "BEGIN:VEVENT\nDTSTART:20260303T080000Z\nEND:VEVENT\nBEGIN:VEVENT\nEND:VEVENT\n"
        )
        calendar = f"BEGIN:VCALENDAR\nX-WR-CALNAME:Fairs\\, 2026\n{events}END:VCALENDAR\n"
        found = reading("a.ics", calendar.encode())
        self.assertEqual(found.title, "Fairs, 2026")
        self.assertEqual(
            [(section.anchor, section.heading, section.text) for section in found.sections],
            [
                ("event=1", "Fair", "Event: Fair\nWhen: 2026-03-02\nStalls open at ten."),
                ("event=2", "", "When: 2026-03-03 08:00 (UTC)"),
            ],
        )

    def test_a_file_without_an_event_is_not_read_as_a_calendar(self):
        for data in (b"nonsense", b"BEGIN:VCALENDAR\nEND:VCALENDAR\n"):
            with self.assertRaisesMessage(Unreadable, "not a calendar"):
                reading("a.ics", data)

    def test_a_reminder_of_an_event_that_is_left_out_adds_nothing_to_another(self):
        event = "BEGIN:VEVENT\nSUMMARY:Fair\nBEGIN:VALARM\nEND:VALARM\nLOCATION:{}\nEND:VEVENT\n"
        many = event.format("Quay") * icalendar.MAX_EVENTS + event.format("Barn").replace(
            "SUMMARY:Fair", "X:Y"
        )
        self.assertNotIn("Barn", icalendar.calendar_text(many))

    def test_an_invalid_calendar_adds_nothing(self):
        for calendar in ("", "nonsense", "BEGIN:VEVENT", "BEGIN:VEVENT\nSUMMARY", ";;;:\n" * 100):
            self.assertIsNone(self.event(calendar), calendar)


def attribute(level, kind, data):
    return struct.pack("<BII", level, kind, len(data)) + data + bytes(2)


def texts(*properties):
    """Properties of a message or an attachment: (id, text)."""
    whole = struct.pack("<I", len(properties))
    for number, text in properties:
        data = (text + "\0").encode("utf-16-le")
        whole += struct.pack("<HHII", 0x1F, number, 1, len(data)) + data.ljust(-(-len(data) // 4) * 4, b"\0")
    return whole


def binary(*properties):
    """Properties of a message or an attachment: (id, bytes)."""
    whole = struct.pack("<I", len(properties))
    for number, data in properties:
        whole += struct.pack("<HHII", 0x102, number, 1, len(data)) + data.ljust(-(-len(data) // 4) * 4, b"\0")
    return whole


# The example of MS-OXRTFCP: {\rtf1\ansi\ansicpg1252\pard hello world}
COMPRESSED = bytes.fromhex(
    "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
)


def stored(text):
    """Rich text as Outlook stores it without compression."""
    return struct.pack("<II4sI", len(text) + 12, len(text), b"MELA", 0) + text


class MimeTests(SimpleTestCase):
    def test_unencoded_headers_are_read_in_the_encoding_that_they_look_like(self):
        text = (
            "From: J\u00f6rg M\u00fcller <j@example.org>\nSubject: Pr\u00e4mie f\u00fcr M\u00e4rz\n"
            'Content-Type: text/plain; name="Pr\u00e4mie.txt"\n\nText.'
        )
        for encoding in ("cp1252", "utf-8"):
            found = reading("a.eml", text.encode(encoding))
            self.assertEqual(found.title, "Pr\u00e4mie f\u00fcr M\u00e4rz")
            self.assertIn("J\u00f6rg M\u00fcller <j@example.org>", found.sections[0].text)
            self.assertEqual([part.path for part in found.parts], ["Pr\u00e4mie.txt"])

    def test_a_byte_order_mark_or_blank_lines_before_the_header_are_skipped(self):
        for start in (codecs.BOM_UTF8, b"\r\n\r\n", codecs.BOM_UTF8 + b"\n"):
            self.assertEqual(reading("a.eml", start + b"Subject: Plan\r\n\r\nText.").title, "Plan")

    def attached(self, inner, encoding):
        data = (
            b"Subject: Fwd\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n"
            b"Content-Transfer-Encoding: " + encoding + b"\n\n" + inner + b"\n--b--\n"
        )
        found = mock.Mock(left_out=[])
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_bytes(data)
            mail.read(Path(file.name), Limits(100, 100_000, 1_000_000), found)
        name, chunks = found.add.call_args.args
        return name, b"".join(chunks).strip()

    def test_an_encoded_message_in_a_message_is_decoded(self):
        inner = (
            "Subject: Pr\u00e4mie\nContent-Type: multipart/mixed; boundary=c=41\n\n"
            "--c=41\n\n50 \u20ac = all.\n--c=41--"
        ).encode()
        for encoding, encoded in (
            (b"base64", base64.encodebytes(inner)),
            (b"quoted-printable", quopri.encodestring(inner)),
        ):
            self.assertEqual(self.attached(encoded, encoding), ("Pr\u00e4mie.eml", inner))

    def test_a_message_in_a_message_that_is_only_declared_as_encoded_is_kept(self):
        inner = (
            b"Subject: Plan\nContent-Type: multipart/mixed; boundary=c\n\n"
            b"--c\nContent-Transfer-Encoding: base64\n\nVA==\n--c--"
        )
        for encoding in (b"base64", b"quoted-printable"):
            self.assertEqual(self.attached(inner, encoding), ("Plan.eml", inner))


class RichTextTests(SimpleTestCase):
    def test_a_message_of_outlook_that_only_has_rich_text_is_read(self):
        text = rb"{\rtf1\ansi\fromtext The ferry leaves at nine.\par Bring a coat.\par}"
        for data, expected in (
            (COMPRESSED, "hello world"),
            (stored(text), "The ferry leaves at nine.\n\nBring a coat."),
        ):
            message = {SUBJECT: "Plan", SENDER: "Ann", RICH_TEXT: data}
            found = reading("a.msg", building.outlook(message))
            self.assertEqual(found.sections[-1].text, expected)

    def test_tags_around_text_that_was_html_are_left_out(self):
        text = (
            rb"{\rtf1\ansi\fromhtml1{\*\htmltag64 <p>}\htmlrtf {\htmlrtf0 At nine.{\*\htmltag72 </p>}"
            rb"\htmlrtf\par}\htmlrtf0}"
        )
        self.assertEqual(compressed_text(stored(text)), "At nine.")

    def test_damaged_rich_text_is_read_up_to_the_damage(self):
        for end in range(len(COMPRESSED)):
            self.assertIn(compressed_text(COMPRESSED[:end]), ("", *("hello world"[:n] for n in range(1, 12))))
        for data in (b"", bytes(40), stored(b"{" * 5_000), COMPRESSED[:16] + b"\xff" * 5_000):
            self.assertEqual(compressed_text(data), "")


class WinmailTests(SimpleTestCase):
    def winmail(self, *attributes):
        return struct.pack("<IH", 0x223E9F78, 1) + b"".join(attributes)

    def test_the_files_in_a_winmail_file_are_attached_to_its_message(self):
        data = self.winmail(
            attribute(1, 0x0006_9007, struct.pack("<II", 1252, 0)),
            attribute(1, 0x0002_800C, "F\u00e4hre um neun.".encode("cp1252") + b"\0"),
            attribute(2, 0x0006_9002, bytes(14)),
            attribute(2, 0x0001_8010, b"PLAN~1.TXT\0"),
            attribute(2, 0x0006_800F, b"Boats to Ellery."),
            attribute(2, 0x0006_9005, texts((0x3001, "shown"), (0x3707, "Fahrplan f\u00fcr M\u00e4rz.txt"))),
            attribute(2, 0x0006_9002, bytes(14)),
            attribute(2, 0x0001_8010, b"ports.csv\0"),
            attribute(2, 0x0006_800F, b"a,b"),
        )
        found = reading("a.eml", mime(("winmail.dat", "application/ms-tnef", data)))
        self.assertEqual(
            [part.path for part in found.parts], ["Fahrplan f\u00fcr M\u00e4rz.txt", "ports.csv"]
        )
        self.assertEqual(found.sections[-1].text, "See below.")
        found = reading("a.eml", mime(("winmail.dat", "application/ms-tnef", data), text=""))
        self.assertEqual(found.sections[-1].text, "F\u00e4hre um neun.")

    def test_html_in_a_winmail_file_is_the_text_if_there_is_no_other(self):
        data = self.winmail(attribute(1, 0x0006_9003, texts((0x1013, "<p>At <b>nine</b>.</p>"))))
        found = reading("a.eml", mime(("winmail.dat", "application/ms-tnef", data), text=""))
        self.assertEqual(found.sections[-1].text, "At nine.")

    def test_rich_text_in_a_winmail_file_is_the_text_if_there_is_no_other(self):
        attributes = attribute(1, 0x0006_9003, binary((0x1009, COMPRESSED)))
        found = reading(
            "a.eml", mime(("winmail.dat", "application/ms-tnef", self.winmail(attributes)), text="")
        )
        self.assertEqual(found.sections[-1].text, "hello world")

    def test_a_broken_winmail_file_is_read_up_to_the_damage(self):
        whole = self.winmail(
            attribute(2, 0x0006_9002, bytes(14)),
            attribute(2, 0x0001_8010, b"a.txt\0"),
            attribute(2, 0x0006_800F, b"Boats."),
            attribute(2, 0x0006_9005, struct.pack("<IHHI", 0xFFFFFFFF, 0x101F, 0x3707, 0xFFFFFFFF)),
        )
        for end in range(len(whole)):
            found = reading("a.eml", mime(("winmail.dat", "application/ms-tnef", whole[:end])))
            self.assertLessEqual({part.path for part in found.parts}, {"a.txt"})
        self.assertEqual([part.path for part in found.parts], ["a.txt"])
        found = reading("a.eml", mime(("winmail.dat", "application/octet-stream", b"something else")))
        self.assertEqual(found.left_out, (("winmail.dat", NOT_A_FORMAT),))
