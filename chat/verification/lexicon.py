"""Words that verification knows, of English and German; other languages go without.

Each line of a table is one entry: its forms between spaces.
"""

from itertools import count


def _words(text: str) -> frozenset[str]:
    return frozenset(text.casefold().split())


def _numbered(text: str, first: int, step: int = 1) -> dict[str, int]:
    """The forms in each line, with numbers that go up line by line."""
    lines = zip(text.casefold().strip().splitlines(), count(first, step), strict=False)
    return {form: number for line, number in lines for form in line.split()}


def _by_first(text: str) -> dict[str, str]:
    """Each form with the first one in its line."""
    lines = [line.split() for line in text.casefold().strip().splitlines()]
    return {form: line[0] for line in lines for form in line}


STOP_WORDS = _words(
    """
    a about above according after all also although am an and any are as at be became because been being
    before both but by can come could did do does done during each either else etc every for from
    further gets give given gives had has have having he hence her here hers him his how however i if in
    into is it its itself just least made make makes may me might more moreover most much must my nor
    now of off on once one only onto or other our out over own per provided rather same shall she should
    since so some still such than that the their them then there therefore these they thing this those
    though through thus to too under until up upon us very via was we were what when where whereas
    whether which while who whom whose why will with within would yet you your stated states say says
    said document source page section aber alle allem allen aller alles als also am an andere anderen
    auch auf aus bei beim bis bzw da dabei dadurch dafür daher damit dann daran darauf daraus darf darin
    darum das dass davon dazu dein dem den denn der deren des deshalb dessen die dies diese diesem
    diesen dieser dieses doch dort du durch dürfen ein eine einem einen einer eines einige er es etwa
    etwas euer falls für ganz gegen gemäß hat hatte haben hier hin hinter ich ihm ihn ihnen ihr ihre
    ihrem ihren ihrer im immer in indem ins ist ja je jede jedem jeden jeder jedes jedoch jene jetzt
    kann können laut mehr mein mit muss müssen nach nachdem noch nun nur ob oder ohnehin pro quelle sehr
    sei seien sein seine seinem seinen seiner seit sich sie sind so sobald sofern solch solche soll
    sollen sollte sollten sondern sonst sowie soweit sowohl statt über um und uns unser unter usw viel
    vom von vor wann war waren warum was weder weil welche welchem welchen welcher welches wenn wer
    werden wie wieder will wir wird wo wurde wurden während würde zu zum zur zwar zwischen seite
    abschnitt dokument man erst erstmals erstmalig
    """
)
# Words that say so little that a paraphrase may add them.
LIGHT_WORDS = _words(
    """
    get gets got getting take takes taken taking took go goes going gone went put puts bring brings brought
    anyone anybody anything everyone everybody everything someone somebody something whoever whatever
    case cases person people thing things way ways possible able jemand beträgt betragen gilt gelten
    bekommt bekommen fall grundsätzlich möglich
    """
)
NEGATIONS = _words(
    """
    not no never none nobody nothing neither nor nowhere without cannot cant can't won't don't doesn't
    didn't isn't aren't wasn't weren't shouldn't mustn't needn't couldn't wouldn't haven't hasn't hadn't
    shan't n't except excluding unless hardly nicht nie niemals kein keine keinem keinen keiner keines
    keinerlei niemand nichts ohne weder außer ausgenommen keinesfalls keineswegs nirgends ne pas jamais
    aucun aucune sans ni nunca ningún ninguna sin tampoco nada niet geen nooit zonder non mai senza
    """
)
DENIALS = _words("no not nicht")
# Words that say no without a negation: where one side has a negation, the other may have one of these.
REFUSALS = _words(
    """
    forbid forbids forbidden prohibit prohibits prohibited ban banned disallowed refuse refused exclude
    excludes excluded exempt exempted lapse lapses unpaid unlawful invalid fail fails lack lacks prevent
    prevents ineligible forfeit forfeited irrelevant unnecessary unlimited unable impossible
    inadmissible verboten untersagt ausgeschlossen unzulässig unbezahlt ungültig unmöglich verfällt
    entfällt entfallen unwirksam unberührt omit omits omitted disregard disregarded ignored exception
    exceptions ausnahme ausnahmen verliert verlieren lose loses lost
    """
)
# Words and their opposites; “!” where the one is the other denied.
_POLES = (
    """
before earlier beforehand prior vor vorher davor früher | after afterwards later nach nachher danach später
minimum least mindestens minimal frühestens | maximum most höchstens maximal spätestens
increase increased rises raised erhöht steigt | decrease decreased reduce reduced lower gesenkt sinkt
! allowed permitted may erlaubt gestattet zulässig | forbidden prohibited banned verboten untersagt unzulässig
! paid bezahlt vergütet | unpaid unbezahlt unvergütet
earliest | last latest letzte letzten letzter
! open opens opened geöffnet öffnet | closed closes geschlossen schließt
! include includes included including einschließlich | exclude excludes excluded excluding ausgenommen
! mandatory required obligatory compulsory must vorgeschrieben | optional voluntary freiwillig
full voll vollen volle | half partial halb halben halbe
daily täglich | weekly wöchentlich
monthly monatlich | yearly annually annual jährlich
north northern norden nördlich | south southern süden südlich
above oberhalb | below unterhalb
inside within innerhalb | outside außerhalb
always immer stets | never nie niemals
more mehr exceed exceeds exceeding | less fewer weniger
longer länger | shorter kürzer
! accept accepted accepts akzeptiert | reject rejected refuses abgelehnt
public öffentlich öffentliche | private privat
internal intern interne | external extern externe
temporary befristet | permanent dauerhaft unbefristet
""".casefold()
    .strip()
    .splitlines()
)
POLES: dict[str, tuple[int, int]] = {
    form: (number, side)
    for number, line in enumerate(_POLES)
    for side, forms in enumerate(line.removeprefix("!").split("|"))
    for form in forms.split()
}
DENIABLE = frozenset(number for number, line in enumerate(_POLES) if line.startswith("!"))

# Words for the same, one group a line.
SYNONYMS = tuple(
    """
begin begins beginning begun start starts starting commence commences
end ends finish finishes expire expires expiry lapse lapses terminate terminates
get gets got receive receives obtain obtains earn earns earned accrue accrues gain given awarded granted grant
buy buys bought purchase purchases purchased
need needs needed require requires required requirement necessary must
allow allows allowed permit permits permitted
phone phones telephone call calls ring
tell tells told inform informs informed notify notifies notified notification report reports announce
ask asks request requests requested apply applies application
show shows shown display displayed
send sends sent submit submits submitted forward
keep keeps kept store stores stored retain retained hold held
help helps assist assists assistance support
use uses used using utilise employ apply
last lasts lasting duration long
away absent absence missing
return returns returning back
new fresh another
sick ill illness sickness unwell
staff employee employees worker workers colleague colleagues personnel everyone anyone
pay pays paid payment money salary wage wages
yearly annual annually year
doctor physician medical
job work post position role
leave holiday holidays vacation
boat ship vessel craft
choose chooses chosen select selects selected pick
change changes changed alter altered amend amended modify
check checks checked inspect inspected examine examined examination test tested verify review reviewed
give gives hand hands issue issued issues provide provides provided
big large great huge
small little tiny
fast quick quickly rapid rapidly
responsible charge
rule rules regulation regulations policy
cost costs price fee charge charges
build built construct constructed construction
near close nearby
happen happens occur occurs
fix repair repaired repairs mend
remove removes removed delete deleted take
stop stops stopped cease ceases halt
throughout entire whole complete entirely completely full
several many multiple various
enough sufficient suffice suffices
correct right accurate
kid child children
mother father parent parents
live lives reside resides residence
cover covers covered apply applies
document documents record records file files
machine device equipment unit
kept maintained maintain maintains
replace replaces replaced substitute exchange exchanged renew renewed
sign signs signed signature
approve approves approved approval authorise authorises authorised agree agrees agreed consent
teach train trained training instruct instruction
danger dangerous hazard hazardous unsafe
visitor visitors guest guests
meet meets meeting gather
wait waits waiting
quarter quarterly
beginnen beginnt beginn anfangen anfängt start startet
enden endet ende ablaufen abläuft auslaufen erlischt verfallen verfällt
erhalten erhält bekommen bekommt kriegen
erwerben erwirbt erworben entstehen
brauchen braucht benötigen benötigt erforderlich notwendig nötig
beantragen beantragt antrag anträge
kündigen kündigt kündigung
mitteilen mitgeteilt melden meldet meldung anzeigen informieren informiert unterrichten
zahlen zahlt gezahlt bezahlen bezahlt vergüten vergütet vergütung auszahlen lohn gehalt entgelt
arbeitnehmer beschäftigte beschäftigten beschäftigter mitarbeiter mitarbeitende angestellte
bestehen besteht bestanden bestehende
jährlich jahr kalenderjahr
krank krankheit erkrankt erkrankung arbeitsunfähig
arzt ärztlich ärztliches ärztin
bescheinigung attest zeugnis nachweis
dauern dauert dauer
geben gibt erteilen erteilt gewähren gewährt ausstellen
verbieten verboten untersagen untersagt
vorlegen vorzulegen einreichen abgeben
wählen auswählen gewählt
prüfen prüft geprüft kontrollieren überprüfen
verwenden verwendet benutzen benutzt nutzen nutzt gebrauchen
aufbewahren aufbewahrt speichern gespeichert
ändern änderung geändert anpassen
kosten preis gebühr
chef vorgesetzte vorgesetzter leiter leitung
hälfte halb halbe
""".casefold()
    .strip()
    .splitlines()
)

ONES = _numbered(
    """
zero null
one ein eins eine
two zwei
three drei
four vier
five fünf
six sechs
seven sieben
eight acht
nine neun
ten zehn
eleven elf
twelve zwölf
thirteen dreizehn
fourteen vierzehn
fifteen fünfzehn
sixteen sechzehn
seventeen siebzehn
eighteen achtzehn
nineteen neunzehn
""",
    0,
)
TENS = _numbered(
    """
twenty zwanzig
thirty dreißig
forty vierzig
fifty fünfzig
sixty sechzig
seventy siebzig
eighty achtzig
ninety neunzig
""",
    20,
    10,
)
_ORDINALS = _numbered(
    """
first erste ersten erster erstes
second twice zweite zweiten zweimal
third dritte dritten dreimal
fourth vierte vierten viermal
fifth fünfte fünften
sixth sechste sechsten
seventh siebte siebten
eighth achte achten
ninth neunte neunten
tenth zehnte zehnten
""",
    1,
)
_MORE = {"hundred": 100, "hundert": 100, "thousand": 1000, "tausend": 1000, "dozen": 12, "dutzend": 12}
NUMBERS = {
    form: number
    for form, number in (ONES | TENS | _ORDINALS | _MORE).items()
    if form not in ("one", "ein", "eine")  # articles and pronouns more often than numbers
}
MONTHS = _numbered(
    """
january januar jan
february februar feb
march märz mar
april apr
may mai
june juni jun
july juli jul
august aug
september sept sep
october oktober oct okt
november nov
december dezember dec dez
""",
    1,
)
UNITS = _by_first(
    """
day days tag tage tagen tages arbeitstage arbeitstagen werktage werktagen werktag kalendertage
week weeks woche wochen
month months monat monate monaten
year years jahr jahre jahren
hour hours hr hrs stunde stunden
minute minutes min mins minuten
second seconds sekunde sekunden sec
% percent prozent percentage cent
€ euro euros eur
$ dollar dollars usd
£ pound pounds gbp pfund
km kilometre kilometres kilometer kilometers
metre metres meter meters
cm centimetre centimetres zentimeter
kg kilogram kilograms kilo kilogramm
tonne tonnes tons tonnen
litre litres liter liters
gb gigabyte gigabytes
mb megabyte megabytes
bit bits
character characters zeichen
knots knot knoten
kw kilowatt
person persons people personen menschen
"""
)
DIMENSIONS = dict.fromkeys(("day", "week", "month", "year", "hour", "minute", "second", "time"), "time")
DIMENSIONS |= dict.fromkeys(("€", "$", "£"), "money")
ENDINGS = (
    "ungen", "ung", "ingly", "ings", "ing", "edly", "ed", "ern", "ens", "en", "er", "em", "es", "est", "ly",
    "s", "e", "n", "t",
)  # fmt: skip
GERMAN = _words("der die das und ist nicht ein eine den dem des mit für von zu auf im wird werden sind bei")
ENGLISH = _words("the of and is not a an to in for with be are by on that this it or")
