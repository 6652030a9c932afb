"""Statements in which a noun of the source is replaced by another one."""

from chat.tests.sources import source
from chat.tests.verdict_case import VerdictCase
from chat.verification import verify

GARDENS = source(
    9,
    "g.md",
    "The tenant keeps the hedges below two metres. Rubbish is taken to the depot on the last Saturday of "
    "each month. A shed needs the written permission of the council before work on it begins, and the "
    "secretary inspects every plot in spring. Bonfires are lit after six in winter. The gate is "
    "locked at dusk.",
)
BIBLIOTHEK = source(
    10,
    "b.md",
    "Der Ausweis wird an der Theke verlängert. Für verlorene Medien ist der Preis der Neuanschaffung zu "
    "zahlen. Die Gebühr wird am Automaten entrichtet.",
)


class AlignmentTests(VerdictCase):
    def unclear(self, found, *statements):
        for statement in statements:
            with self.subTest(statement):
                (one,) = verify(f"{statement} [{found.label}].", (found,))
                self.assertEqual((one.verdict, one.unclear), ("not_found", True))

    def test_a_noun_of_another_sentence_in_the_place_of_one_is_unclear(self):
        self.unclear(
            GARDENS,
            "The tenant keeps the gate below two metres",
            "Rubbish is taken to the council on the last Saturday of each month",
            "Bonfires are lit after six in the depot",
        )
        self.unclear(BIBLIOTHEK, "Für verlorene Medien ist der Automat der Neuanschaffung zu zahlen")

    def test_a_noun_of_the_same_sentence_beside_the_neighbours_of_another_is_unclear(self):
        self.unclear(GARDENS, "A plot needs the written permission of the council before work on it begins")

    def test_the_noun_in_its_own_place_is_supported(self):
        self.assert_verdicts_in(
            GARDENS,
            "supported",
            "The hedges have to be kept below two metres by the tenant",
            "On the last Saturday of each month rubbish is taken to the depot",
            "The written permission of the council is needed for a shed before work begins",
            "Each spring the secretary inspects every plot",
        )
        self.assert_verdicts_in(
            BIBLIOTHEK,
            "supported",
            "Verlängert wird der Ausweis an der Theke",
            "Am Automaten wird die Gebühr entrichtet",
        )
