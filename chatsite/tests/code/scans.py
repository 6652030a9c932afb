"""Every function of the product whose parameters are all text, found by its annotations."""

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
