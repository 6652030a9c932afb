"""Recognises questions about how to do something, and texts that say how.

Only English and German are recognised. A text counts if it might say how: “Overtime is claimed on form B2”
might, “Claims are added to this page” does not.
"""

import re

_ASKS = re.compile(
    r"\s*(?:and |und )?(?:how (?:do|can|should|could|must|may|would|to)\b(?! (?:they|it|he|she|the)\b)"
    r"|wie (?:kann|soll|sollte|muss|darf|können|müssen) (?:ich|wir|man)\b|wie \w{2,30}e? (?:ich|man|wir)\b)",
    re.IGNORECASE,
)
_VERB = re.compile(r"\s*how (?:do|can|should|could|must|may|would) (?:i|we|you|one) (\w+)", re.IGNORECASE)
_DO = (
    r"(?:contact|ask|tell|inform|notify|request|submit|send|fill|complete|click|open|go|select|choose|enter|add|use"
    r"|log|sign|visit|download|install|set|check|make|ensure|follow|write|e-?mail|call|book|apply|report|talk|speak"
    r"|see|read|create|start|begin|take|put|keep|give|get|find|run|press|turn|plug|bring|hand|show|attach|upload"
    r"|save|share|invite|schedule|discuss|confirm|record|describe|include|list|name|pay|buy|order|return|claim)"
)
_SAYS = re.compile(
    r"\b(?:you|your|please|must|should|shall|has to|have to|required|ought|via|online|in writing"
    r"|by (?:\w{1,20}ly )?\w{2,20}ing|using|steps?|procedure"
    r"|(?:is|are) (?:done|\w{2,20} (?:to|at|with|by|from|on|through) (?:the|your|our|a|form))"
    r"|(?:members?|employees?|staff|colleagues?|anyone|everyone|we) (?:\w{1,20} )?(?:can|may|need)"
    r"|Sie|man|muss|müssen|kann|können|soll|sollen|ist zu|sind zu|bitte|per|über|durch|schriftlich|formlos"
    r"|mittels|beim?|beantrag\w{1,4}|wende\w{0,2}|zuerst|dann|anschließend|erfolgt|erforderlich|Schriftform)\b"
    rf"|(?:\A|[.;:!?>] |[-*•] |\d[.)] |, |\b(?:to|and|or|then|simply|just|first|not|can|may) ){_DO}\b"
    r"|(?:\A|[.;:!?>] )(?:To|Um) \w|; [^;:]{1,60}: |https?:|@",
    re.IGNORECASE,
)
# “What do I do if …”: not “what can I do with …”, which may ask for possibilities.
_ASKS_WHAT_TO_DO = re.compile(
    r"\bwhat (?:do|must|should|shall|am|are) (?:i|we|you|one|staff|employees) "
    r"(?:(?:have|need|ought|got|supposed|required|expected|meant) to )?"
    r"do(?= if\b| when\b| in case\b| after\b| about\b|[?.]|\Z)"
    r"|\bwhat (?:is|has) to (?:be )?done?\b|\bwhat to do\b"
    r"|\bwas (?:(?:muss|müssen|soll|sollen|sollte|sollten|habe|haben) (?:ich|wir|man) "
    r"[^?]{0,80}\b(?:tun|machen|unternehmen)\b"
    r"|(?:mache|machen|tue|tun|macht|tut) (?:ich|wir|man)\b)|\bwas (?:ist [^?]{0,80})?zu tun\b|\bwas tun\b",
    re.IGNORECASE,
)
_TELLS_TO = re.compile(
    r"\b(?:please|must|should|shall|has to|have to|needs? to|(?:is|are) to be|required|obliged|ought"
    r"|(?:is|are) (?:\w{3,20} )?"
    r"(?:reported|told|informed|notified|called|sent|handed|given|brought|filled|recorded|left|taken)"
    r"|muss|müssen|soll|sollen|ist zu|sind zu|hat zu|haben zu|bitte|verpflichtet|unverzüglich|umgehend"
    r"|sofort|wende\w{0,2}|wir|man)\b"
    r"|(?:\A|[.;!?>:]\s|[-*•] |\d[.)] |\b(?:then|first|and|also|or|we|you),? )"
    rf"(?:{_DO}|telephone|phone|stay|leave|move|wait|stop|switch|do not|don['’]t|never)\b",
    re.IGNORECASE,
)


def asks_what_to_do(question: str) -> bool:
    """Whether the question asks what to do in some case: “What do I do if I am ill?”"""
    return bool(_ASKS_WHAT_TO_DO.search(question))


def tells_to(text: str) -> bool:
    """Whether `text` tells somebody to do something: “Tell the office”, “The office must be told”."""
    return bool(_TELLS_TO.search(text))


def asks_how_to(question: str) -> bool:
    """Whether the question asks how to do something: “How do I order stationery?”"""
    return bool(_ASKS.match(question))


def says_how(question: str, text: str) -> bool:
    """Whether `text` says what to do or how something is done.

    A sentence that begins with the question's verb also counts.
    """
    if _SAYS.search(text):
        return True
    asked = _VERB.match(question)
    return asked is not None and f". {asked[1].lower()} " in f". {text}".lower()
