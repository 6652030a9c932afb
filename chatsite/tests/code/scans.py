"""Functions of the product that read text, found by their annotations.

Those whose parameters are all text can be called, and are measured. Of the others, those that scan or slice
one of their texts in a loop are listed here by hand, because such a loop can take more than linear time.
"""

import ast
import importlib
import inspect

from chatsite.tests.code.expressions import ROOT, trees

# Functions that are left out, by module (None: all), because their text comes from the site, its settings or
# the machine, or because they do not parse it.
NOT_FOREIGN = {
    "chat.errors": {"words", "status"},
    "chat.llm.chat_model": {"instructions"},
    "chat.engine.page_images": {"scaled"},  # an image, of at most some pixels
    "chat.runs.journal": {"_with_readable"},
    "chatsite.accounts.passwords.throttling": {"admit", "forget"},  # work in the database
    "chatsite.accounts.oidc.provider": {"request"},
    "chatsite.accounts.views": set(),
    "chatsite.db.threads": {"_reading", "_set_request"},
    "chatsite.demo": {"_matches"},  # a hash of passwords, slow by design and of fixed cost
    "chatsite.server.embedded_postgres.cluster": {"_password_on_descriptor"},
    "chatsite.environment": None,  # text of the operator
    "chatsite.server.health": {"_unavailable"},
    "ingestion.embedding.selection": {"_loaded"},
    "ingestion.storage.files": None,  # names of stored files, which the site chooses
    "ingestion.management.commands.sync": None,
    "ingestion.parsing.readers.__init__": {"load"},
    "ingestion.parsing.forkserver": {"_environment"},
    "ingestion.parsing.readers.ocr": {"why_not", "usable"},
    "chatsite.db.sql_files": {"statement"},
}


def functions():
    """Module-level functions whose required parameters are all text, with the kinds of these, by name."""
    found = {}
    for path, tree in trees().items():
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        left_out = NOT_FOREIGN.get(name, set())
        if left_out is None:
            continue
        for node in tree.body:
            kinds = _kinds(node) if isinstance(node, ast.FunctionDef) else []
            if kinds and node.name not in left_out:
                found[f"{name}.{node.name}"] = (name, node.name, kinds)
    return found


def call_of(name, function, kinds):
    """Call the function with the same text for each parameter; read what it yields, and ignore exceptions."""
    asked = getattr(importlib.import_module(name), function)

    def call(text):
        data = text.encode("utf-8", "replace")
        try:
            result = asked(*[data if kind == "bytes" else text for kind in kinds])
            if inspect.isgenerator(result):
                for _ in result:
                    pass
        except Exception:
            return

    return call


def _kinds(node):
    arguments = [*node.args.posonlyargs, *node.args.args]
    required = arguments[: len(arguments) - len(node.args.defaults)]
    if None in node.args.kw_defaults or not required:
        return []
    kinds = [getattr(argument.annotation, "id", "") for argument in required]
    return kinds if set(kinds) <= {"str", "bytes"} else []


SCANS = {
    *(
        "count",
        "endswith",
        "find",
        "findall",
        "finditer",
        "fullmatch",
        "index",
        "lstrip",
        "match",
        "partition",
    ),
    *("replace", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "search", "split", "splitlines"),
    *("startswith", "strip", "sub", "subn", "translate"),
}
# The functions that `loops` finds, with the reason why each takes linear time. Read a new one before you add
# it, or measure it in test_linear_time.py.
FORWARD = {  # each step begins where the last one ended, or reads a separate part
    "chat.citations.feed",
    "chat.protocols.web_component._inline",
    "chat.redaction.withholding._supported",
    "chat.verification.answer_statements._blanked",
    "chat.verification.answer_statements._quotations",
    "chat.verification.answer_statements._segments",
    "chat.verification.cited_passages._cells",
    "chat.verification.cited_passages.articles_of",
    "chat.verification.terms.facts._multiplied",
    "chat.verification.terms.facts._with_bounds",
    "chat.verification.terms.facts.parts_of",
    "chat.verification.verdicts._statement",
    "chat.verification.verdicts._without_bare_answers",
    "chatsite.server.serving.http_protocol._parse",
    "chatsite.server.serving.websocket_protocol.data_received",
    "chatsite.stored_messages._values",
    "ingestion.parsing.boxes._stretches",
    "ingestion.parsing.readers.office.rtf._parse",
    "ingestion.parsing.readers.pdf_page_text._raw_lines",
    "ingestion.parsing.readers.pdf_page_text.words_with_boxes",
    "ingestion.parsing.readers.records._values",
    "ingestion.portal.finding.marked",
    "ingestion.search.sentence_splitting._blocks",
    "ingestion.search.sentence_splitting._clauses",
}
BOUNDED = {  # the number of steps, or what each of them reads, has a limit
    "chat.engine.second_look.second_look": "settings.SECOND_LOOK",
    "chat.engine.writing._undecided": "MAX_STOP",
    "chat.engine.writing.feed": "MAX_STOPS",
    "chat.portal.citing.passage_parts.marked": "MAX_STATEMENTS of an answer",
    "chat.portal.rendering.markdown.with_marks": "MAX_STATEMENTS of an answer",
    "chat.quoting.questions.amounts.counts": "CLAUSE and MAX_COLUMN",
    "chat.quoting.questions.applicability.has": "the places that a question names",
    "chat.quoting.questions.asked_files.asked_files": "the files of the passages found",
    "chat.redaction.withholding.joined": "MAX_STATEMENTS of an answer",
    "chat.verification.checks.numbers._bound_of": "BOUND_TOKENS and MAX_MAY",
    "chat.verification.terms.facts.abbreviations": "MAX_INITIALS",
    "chat.verification.terms.relations.mentions": "MAX_COMPOUND",
    "chat.verification.terms.relations.related": "MAX_COMPOUND",
    "chatsite.accounts.admin_base.read_only_admin.lookup_allowed": "the filters of a page",
    "chatsite.http.access_log._route": "the URLs of sockets",
    "ingestion.parsing.boxes._placed": "the length of a passage",
    "ingestion.parsing.boxes._whole_words": "MAX_PLACES",
    "ingestion.parsing.boxes.boxes_of": "the length of a passage",
    "ingestion.search.translations._of_parts": "MAX_COMPOUND",
}
LOOPS = ast.For | ast.While | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def loops():
    """The names of functions and methods, also nested ones, that scan or slice a parameter in a loop.

    Functions that are measured (:func:`functions`) are left out. Scans of attributes, and those that a loop
    makes through another function, are not found.
    """
    found = set()
    for path, tree in trees().items():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        left_out = NOT_FOREIGN.get(module, set())
        if left_out is None:
            continue
        measured = {node for node in tree.body if isinstance(node, ast.FunctionDef) and _kinds(node)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node in measured:
                continue
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            texts = {each.arg for each in arguments if getattr(each.annotation, "id", "") in ("str", "bytes")}
            repeated = (
                part for loop in ast.walk(node) if isinstance(loop, LOOPS) for part in _repeated(loop)
            )
            if texts and any(_scans(part, texts) for part in repeated):
                found.add(f"{module}.{node.name}")
    return found


def _repeated(loop):
    """The parts of a loop that are evaluated with each step, unlike the first iterable of a comprehension."""
    if isinstance(loop, ast.For | ast.While):
        return [*loop.body, *([loop.test] if isinstance(loop, ast.While) else [])]
    first, *others = loop.generators
    values = [loop.key, loop.value] if isinstance(loop, ast.DictComp) else [loop.elt]
    return [*values, *first.ifs, *others]


def _scans(part, texts):
    """Whether this part calls a scanning method on or with one of the texts, or slices or searches it."""
    for node in ast.walk(part):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SCANS:
            read = ast.walk(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            read = [node.value]
        elif isinstance(node, ast.Compare):
            read = node.comparators if isinstance(node.ops[0], ast.In | ast.NotIn) else []
        else:
            continue
        if any(isinstance(each, ast.Name) and each.id in texts for each in read):
            return True
    return False
