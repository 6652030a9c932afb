"""Irregular forms of English and German verbs and nouns, for which no rule about endings works."""

_FORMS = """
be: been; bear: bore born borne; begin: began begun; break: broke broken; bring: brought; build: built
buy: bought; catch: caught; choose: chose chosen; come: came; deal: dealt; do: did done; draw: drew drawn
drive: drove driven; eat: ate eaten; fall: fell fallen; feel: felt; fight: fought; find: found
fly: flew flown; forget: forgot forgotten; freeze: froze frozen; get: got gotten; give: gave given
go: went gone; grow: grew grown; hang: hung; have: had; hear: heard; hide: hid hidden; hold: held
keep: kept; know: knew known; lay: laid; lead: led; leave: left; lend: lent; lose: lost; make: made
mean: meant; meet: met; pay: paid; ride: rode ridden; ring: rang rung; rise: rose risen; run: ran
say: said; see: saw seen; seek: sought; sell: sold; send: sent; shake: shook shaken; shoot: shot
sing: sang sung; sit: sat; sleep: slept; speak: spoke spoken; spend: spent; stand: stood
steal: stole stolen; stick: stuck; swim: swam swum; take: took taken; teach: taught; tell: told
think: thought; throw: threw thrown; understand: understood; wear: wore worn; win: won
write: wrote written; child: children; woman: women; man: men; person: people; foot: feet; tooth: teeth
anbieten: angeboten; anfangen: angefangen; annehmen: angenommen; anrufen: angerufen; ausgeben: ausgegeben
beginnen: begonnen begann; beantragen: beantragt; bewerben: beworben; bieten: geboten; binden: gebunden
bitten: gebeten; bleiben: geblieben blieb; brechen: gebrochen bricht; bringen: gebracht brachte
denken: gedacht; dürfen: darf durfte; einhalten: eingehalten; essen: gegessen isst
fahren: gefahren fährt fuhr; fallen: gefallen fällt; fangen: gefangen fängt; finden: gefunden fand
fliegen: geflogen; frieren: gefroren; geben: gegeben gibt gab; gehen: gegangen ging
gelten: gegolten gilt galt; genießen: genossen; gewinnen: gewonnen; gießen: gegossen; greifen: gegriffen
halten: gehalten hält hielt; hängen: gehangen; heben: gehoben hob; heißen: geheißen hieß
helfen: geholfen hilft; kennen: gekannt; kommen: gekommen kam; können: kann konnte; laden: geladen lädt
lassen: gelassen lässt; laufen: gelaufen läuft; leiden: gelitten; leihen: geliehen; lesen: gelesen liest
liegen: gelegen; lügen: gelogen; messen: gemessen misst; müssen: muss musste; nehmen: genommen nimmt nahm
nennen: genannt; raten: geraten rät; reißen: gerissen; rufen: gerufen; scheiden: geschieden
schieben: geschoben; schlafen: geschlafen schläft; schlagen: geschlagen schlägt; schließen: geschlossen
schneiden: geschnitten; schreiben: geschrieben schrieb; schweigen: geschwiegen; schwimmen: geschwommen
sehen: gesehen sieht; senden: gesandt; sinken: gesunken; sprechen: gesprochen spricht; stehen: gestanden
stehlen: gestohlen; steigen: gestiegen; sterben: gestorben stirbt; tragen: getragen trägt trug
treffen: getroffen trifft; treten: getreten tritt; trinken: getrunken; tun: getan tut
verbieten: verboten; vergessen: vergisst; verlieren: verloren; verschieben: verschoben
vertreten: vertritt; werben: geworben; werfen: geworfen wirft; wiegen: gewogen; wissen: gewusst weiß
ziehen: gezogen zog
"""

BASES = {
    form: base.strip()
    for entry in _FORMS.replace("\n", ";").split(";")
    if entry
    for base, _, forms in [entry.partition(":")]
    for form in forms.split()
}
