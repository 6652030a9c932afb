"""Lists of English and German words for verification; NEGATIONS also has other languages.

In tables such as MONTHS, each line is one entry: its forms, separated by spaces.
"""

from itertools import count
from pathlib import Path


def _words(text: str) -> frozenset[str]:
    return frozenset(text.casefold().split())


def _numbered(text: str, first: int, step: int = 1) -> dict[str, int]:
    """Maps the forms in each line to the number of the line."""
    lines = zip(text.casefold().strip().splitlines(), count(first, step), strict=False)
    return {form: number for line, number in lines for form in line.split()}


def _by_first(text: str) -> dict[str, str]:
    """Maps each form to the first one in its line."""
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
    though through thus to too under unlike until up upon us very via was we were what when where whereas
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
ACRONYMS = frozenset(("MIT", "IT", "US", "WHO", "States"))  # names that would be stop words in lower case
# Words with so little meaning that a paraphrase may add them.
LIGHT_WORDS = _words(
    """
    get gets got getting take takes taken taking took go goes going gone went put puts bring brings brought
    anyone anybody anything everyone everybody everything someone somebody something whoever whatever
    alone case cases person people thing things way ways possible able well let lets whole really simply
    usually normally currently automatically overall instead always moment mean means meaning apart
    jemand beträgt betragen gilt gelten bekommt bekommen fall grundsätzlich möglich
    """
)
# Nouns that name nothing specific, or the people whom the text addresses.
GENERAL_NOUNS = LIGHT_WORDS | _words(
    """
    place places middle beginning start end course total basis kind sort type level point time times moment
    advance board piece majority rest event order line number amount amounts fact reason reasons manner
    degree hand
    hands step steps part parts side top bottom size rate matter matters means condition conditions
    circumstances situation situations example instance addition onwards onward afterwards respect
    regard behalf purpose question answer result
    company employer employee employees staff colleague colleagues worker workers organisation firm
    you user users reader member members team
    stück rahmen form art zeitpunkt höhe ende anfang beginn bezug regel regelfall person personen jahr zeit
    dauer grund gründe umstände voraussetzung voraussetzungen bedingung folge teil sinne weise lage
    satz zweck
    beschäftigte beschäftigten arbeitgeber arbeitnehmer mitarbeiter unternehmen firma möglichkeit anspruch
    recht
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
# Words that deny without a negation: a text with one of these may mean the same as one with a negation.
REFUSALS = _words(
    """
    forbid forbids forbidden prohibit prohibits prohibited ban banned disallowed refuse refused exclude
    excludes excluded exempt exempted lapse lapses unpaid unlawful invalid fail fails lack lacks prevent
    prevents ineligible forfeit forfeited irrelevant unnecessary unlimited unable impossible
    free anonymous anonymously untouched uninterrupted ununterbrochen ununterbrochene ununterbrochenen
    kostenlos kostenlose kostenlosen unentgeltlich unentgeltliche unentgeltlichen
    inadmissible verboten untersagt ausgeschlossen unzulässig unbezahlt ungültig unmöglich verfällt
    entfällt entfallen unwirksam unberührt omit omits omitted disregard disregarded ignored
    verliert verlieren lose loses lost
    """
)
# Words and their opposites, or words that exclude each other. “!” marks pairs in which one side is the
# negation of the other.
_POLES = (
    """
before earlier beforehand prior vor vorher davor früher | after afterwards later nach nachher danach später
minimum least mindestens minimal frühestens | maximum most höchstens maximal spätestens
increase increased rise rises rose risen raised erhöht steigt stieg gestiegen \
| decrease decreased reduce reduced fell lower gesenkt sinkt sank gesunken
! allowed permitted may | forbidden prohibited banned
! erlaubt gestattet zulässig | verboten untersagt unzulässig ausgeschlossen
! paid charged bezahlt vergütet | unpaid free unbezahlt unvergütet kostenlos kostenfrei gratis
earliest | last latest letzte letzten letzter
! open opens opened geöffnet öffnet | closed closes geschlossen schließt
! include includes included including inclusive einschließlich inklusive \
| exclude excludes excluded excluding ausgenommen zuzüglich
! mandatory required obligatory compulsory must vorgeschrieben | optional voluntary freiwillig
full voll vollen volle | half partial halb halben halbe
daily täglich | weekly wöchentlich | monthly monatlich | quarterly vierteljährlich \
| yearly annually annual jährlich
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

# Pairs of opposite groups of words. Unlike the words in `_POLES`, these also count as content words.
OPPOSITES = tuple(
    tuple(side.split() for side in line.split("|"))
    for line in Path(__file__).with_name("opposites.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
)

# Groups of synonyms, one in each line.
SYNONYMS = tuple(
    line
    for line in Path(__file__).with_name("synonyms.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
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
second twice zweite zweiten zweimal double doubled doppelt doppelte doppelten zweifach
third dritte dritten dreimal triple thrice dreifach dreifache dreifachen
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
_MORE |= dict.fromkeys(("million", "millionen", "mio"), 1_000_000) | {"tsd": 1000}
_MORE |= dict.fromkeys(("billion", "bn", "milliarde", "milliarden", "mrd"), 1_000_000_000)
MULTIPLIERS = _MORE.keys()
NUMBERS = {
    form: number
    for form, number in (ONES | TENS | _ORDINALS | _MORE).items()
    if form not in ("one", "ein", "eine")  # more often an article or a pronoun than a number
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
hour hours hr hrs stunde stunden std
minute minutes min mins minuten
second seconds sekunde sekunden sec sek
% percent prozent percentage
cent cents ct
€ euro euros eur
$ dollar dollars usd
£ pound pounds gbp pfund
km kilometre kilometres kilometer kilometers
metre metres meter meters
cm centimetre centimetres zentimeter
mm millimetre millimetres millimeter
sqm m² m2 qm quadratmeter
kg kilogram kilograms kilo kilogramm
tonne tonnes tons tonnen
litre litres liter liters
g gram grams gramm
mg milligram milligrams milligramm
ml millilitre millilitres milliliter
mile miles meile meilen
gb gib gigabyte gigabytes
mb mib megabyte megabytes
kb kib kilobyte kilobytes
tb tib terabyte terabytes
ghz gigahertz
mhz megahertz
ms millisecond milliseconds millisekunde millisekunden
bit bits
character characters zeichen
knots knot knoten
kw kilowatt
kwh kilowattstunde kilowattstunden
chf franken
person persons people personen menschen
"""
)
# “eine 30-tägige Frist”; also the endings of “dreiwöchig”
UNITS |= {
    f"{adjective}{ending}": unit
    for adjective, unit in (
        ("tägig", "day"),
        ("wöchig", "week"),
        ("monatig", "month"),
        ("jährig", "year"),
        ("stündig", "hour"),
        ("minütig", "minute"),
    )
    for ending in ("", "e", "em", "en", "er", "es")
}
DIMENSIONS = dict.fromkeys(("day", "week", "month", "year", "hour", "minute", "second"), "time")
DIMENSIONS |= dict.fromkeys(("€", "$", "£", "cent"), "money") | dict.fromkeys(("clock", "clock12"), "clock")
# Single words, each with phrases that mean the same, mostly phrasal verbs.
_PHRASES = """
decline: turn down, turns down, turned down
cancel: call off, calls off, called off, calling off
submit: hand in, hands in, handed in, turn in, send in, sends in
complete: fill in, fills in, filled in, fill out, fills out, filled out
return: hand back, hands back, give back, gives back, given back, bring back, brings back
return: come back, comes back
repay: pay back, pays back, paid back
contact: get in touch, gets in touch
care: look after, looks after
remove: take off, takes off, taken off
find: find out, finds out, found out
distribute: hand out, hands out, handed out, give out, gives out
immediately: at once, right away, straight away, without delay
remain: carry on, carries on, go on, goes on
always: around the clock, day and night
inspect: look at, looks at
wear: put on, puts on
telephone: ring up, call up
investigate: look into, looks into, looked into
alone: nobody but, none but, niemand außer
increase: go up, goes up
decrease: go down, goes down
excluding: in addition to, on top of
before: until after
percent: per cent, pro cent
never: at no time, in no case, in no event, on no account, under no circumstances, by no means
never: in keinem fall, auf keinen fall, unter keinen umständen, zu keiner zeit
"""
PHRASES: dict[str, list[tuple[tuple[str, ...], str]]] = {}  # by the first word
for _line in _PHRASES.strip().splitlines():
    _meaning, _, _verbs = _line.partition(": ")
    for _first, *_rest in map(str.split, _verbs.split(", ")):
        PHRASES.setdefault(_first, []).append((tuple(_rest), _meaning))
# Fractions in per cent.
FRACTIONS = {"half": 50, "third": 33, "quarter": 25, "fifth": 20, "tenth": 10}
FRACTIONS |= {"drittel": 33, "viertel": 25, "fünftel": 20, "zehntel": 10}
# After these words, “a” before a unit means one: “within a week” is within one week, but “£8 a month” is a
# rate.
BEFORE_UNITS = _words(
    "within inside after under than last lasts for most least innerhalb binnen nach höchstens mindestens"
    " spätestens"
)
# A noun phrase begins after these.
BEFORE_NOUNS = _words(
    """
    a an the your our his her their its this these every each any some another by with of in from at on into
    about against between during for without via per
    """
)
# One of these may follow the last word of a noun phrase.
AFTER_NOUNS = _words(
    """
    is are was were be been has have had can could may might must shall should will would do does did and or
    but if when where while who which that whose by with of in from at on into about against between during
    there here again back for to as than because unless until before after not never
    """
)
ENDINGS = (
    "ungen", "ung", "ingly", "ings", "ing", "edly", "ed", "ern", "ens", "en", "ers", "er", "em", "es", "ests",
    "est", "ly", "ts", "s", "e", "n", "t",
)  # fmt: skip
GERMAN = _words(
    """
    der die das und ist nicht ein eine einem einen einer eines den dem des mit für von zu auf im wird
    werden sind bei dürfen darf müssen muss können kann soll sollen wer mehr als sich oder auch wenn nach
    bis zum zur beim ab pro jeder jede jedes kein keine keinen nur aus durch ohne über unter zwischen man
    hat haben wurde höchstens mindestens
    an am es gibt vom sie ihr ihre dass daß noch aber dieser diese
    """
)
ENGLISH = _words(
    "the of and is not a an to in for with be are by on that this it or at from you your as was were has have"
)
