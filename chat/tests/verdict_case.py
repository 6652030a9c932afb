"""Sources and assertions for tests of verification."""

from django.test import SimpleTestCase

from chat.tests.sources import source
from chat.verification import verify

LEAVE = source(
    1,
    "a.md#x",
    "Leave is planned in March. Staff may carry over\nfive days until 31 March. Ask your manager, Anna Berg. "
    "Carried days lapse after that date and are not paid out. The meal allowance is £25. Abroad it is £30.",
)
BOATS = source(
    2, "b.md", "Boats sail at nine o’clock daily. The harbour office in Sennick is run by Tom Hale."
)
URLAUB = source(
    3,
    "c.md",
    "Der Urlaub beträgt jährlich mindestens 24 Werktage. Die Übertragung des Urlaubs auf das nächste Jahr "
    "ist nur statthaft, wenn dringende Gründe dies rechtfertigen. Der Anspruch ist nicht übertragbar.",
)


# Text of a PDF, where headings and rows are plain lines.
SAFETY = source(
    5,
    "s.pdf#page=1",
    """4 Vessels and fire
The order to abandon ship is never given by bell or whistle. Only the master gives it, by
voice. Everyone is counted within 15 minutes on Class A, ten minutes on Class B and five
minutes on Class C. The badge shows your first name; your surname is never shown there.
Equipment
Kind Class A Class B Class C
Life rafts 10 4 3
Explosives No No No
Extinguishers hang beside the doors.
Fire
Type of fire Use Never use
Oil, fuel, paint Foam, dry powder Water
Electrical equipment Carbon dioxide Water, foam
The bridge sounds the signals.
Signals
Signal Meaning
Continuous bell Fire
Three long blasts Person overboard
Clothing is issued in Carrow Quay.
Uniforms
Item Number issued Replaced every
Fleece jacket 1 24 months
Waterproof coat 1 36 months
Seafarers who return after more than 28 days need a fresh medical examination. The course
lasts six weeks; the last two weeks are optional. Telephone your manager no later than one
hour before your shift starts. Overtime and sea bonus are left out of full pay. The manual is
edition 2026.1 and takes effect on 1 January 2026. A day at sea never exceeds 12 hours. The
office answers on extension 3100. Ask for the harbour master on extension 2200.""",
)
FRIST = source(
    6,
    "f.md",
    "Der volle Anspruch wird erstmalig nach sechsmonatigem Bestehen des Arbeitsverhältnisses erworben. "
    "Der Arbeitgeber ist verpflichtet, eine Bescheinigung auszuhändigen.\n\n"
    "(2) Als Werktage gelten alle Kalendertage.",
)


FAIRS = source(
    7,
    "g.md",
    "Refunds are paid within seven days. Rosters are published 28 days ahead. "
    "Stays of six months need a permit.\n\n"
    "If the price limit cannot be kept because of a trade fair, the travel desk may approve up to "
    "30 per cent more.\n\n"
    "The Head of People appoints an investigator on form HR-07.\n\n"
    "The policy must not:\n\n- Require personal information.\n- Limit testing to members.",
)
FARES = source(
    8,
    "h.md",
    "Ticket: Adult; Winter fare (GBP): 22; Summer fare (GBP): 28\n"
    "Ticket: Child; Winter fare (GBP): 11; Summer fare (GBP): 14\n\n"
    "Allowance: Night allowance; Amount: £3.35; Approved by: Duty Manager\n"
    "Allowance: Standby; Amount: £46; Approved by: Technical Director",
)


class VerdictCase(SimpleTestCase):
    def verdicts(self, answer, *sources):
        return [statement.verdict for statement in verify(answer, sources or (LEAVE, BOATS, URLAUB))]

    def assert_verdicts_in(self, found, verdict, *statements):
        for statement in statements:
            with self.subTest(statement):
                self.assertEqual(self.verdicts(f"{statement} [{found.label}].", found), [verdict])

    def assert_verdict(self, verdict, *statements):
        for statement in statements:
            with self.subTest(statement):
                self.assertEqual(self.verdicts(statement), [verdict])
