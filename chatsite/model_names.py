"""The names of models and fields as the admin shows them, in the reader's language.

Most fields have no name but that of the attribute, so it is translated here, once for every model. Migrations
keep the English names: they compare what the models were given.
"""

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.db.models import Model
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, gettext_noop, override

APPS = ("accounts", "chat", "history", "ingestion")

# Strings for `make messages`. A test compares them with the models in the admin.
NAMES = (
    gettext_noop("webhooks"),
    gettext_noop("retention rules"),
    gettext_noop("proof runs"),
    gettext_noop("proof questions"),
    gettext_noop("access entries"),
    gettext_noop("access entry"),
    gettext_noop("access list"),
    gettext_noop("access lists"),
    gettext_noop("action"),
    gettext_noop("active"),
    gettext_noop("actor"),
    gettext_noop("actor id"),
    gettext_noop("added by"),
    gettext_noop("addresses"),
    gettext_noop("agent"),
    gettext_noop("agents"),
    gettext_noop("answer"),
    gettext_noop("api key"),
    gettext_noop("archived at"),
    gettext_noop("asker"),
    gettext_noop("audience version"),
    gettext_noop("audit entry"),
    gettext_noop("audit log"),
    gettext_noop("body digest"),
    gettext_noop("bulk item"),
    gettext_noop("bulk items"),
    gettext_noop("category"),
    gettext_noop("changed at"),
    gettext_noop("changed by"),
    gettext_noop("citation count"),
    gettext_noop("claim"),
    gettext_noop("comment"),
    gettext_noop("conversation"),
    gettext_noop("conversations"),
    gettext_noop("created at"),
    gettext_noop("deleted at"),
    gettext_noop("description"),
    gettext_noop("device"),
    gettext_noop("devices"),
    gettext_noop("digest"),
    gettext_noop("document"),
    gettext_noop("documents"),
    gettext_noop("ended at"),
    gettext_noop("events"),
    gettext_noop("expires at"),
    gettext_noop("external id"),
    gettext_noop("external identities"),
    gettext_noop("external identity"),
    gettext_noop("external ids"),
    gettext_noop("failing since"),
    gettext_noop("file"),
    gettext_noop("finished at"),
    gettext_noop("first word ms"),
    gettext_noop("folded name"),
    gettext_noop("folder"),
    gettext_noop("former secret"),
    gettext_noop("former secret until"),
    gettext_noop("given title"),
    gettext_noop("group"),
    gettext_noop("group mapping"),
    gettext_noop("group mappings"),
    gettext_noop("groups"),
    gettext_noop("guest address"),
    gettext_noop("guest until"),
    gettext_noop("hints seen"),
    gettext_noop("idempotency key"),
    gettext_noop("instructions"),
    gettext_noop("issuer"),
    gettext_noop("journal entry"),
    gettext_noop("journal entrys"),
    gettext_noop("keys"),
    gettext_noop("kind"),
    gettext_noop("labels"),
    gettext_noop("language"),
    gettext_noop("last event"),
    gettext_noop("last used at"),
    gettext_noop("left out"),
    gettext_noop("legal hold"),
    gettext_noop("listed"),
    gettext_noop("look"),
    gettext_noop("looks"),
    gettext_noop("mark"),
    gettext_noop("may search"),
    gettext_noop("meaning"),
    gettext_noop("media type"),
    gettext_noop("message"),
    gettext_noop("message allowance"),
    gettext_noop("message allowances"),
    gettext_noop("messages"),
    gettext_noop("mode"),
    gettext_noop("model"),
    gettext_noop("name"),
    gettext_noop("named"),
    gettext_noop("newest token at"),
    gettext_noop("note"),
    gettext_noop("options"),
    gettext_noop("order"),
    gettext_noop("origin"),
    gettext_noop("owner"),
    gettext_noop("page count"),
    gettext_noop("part of"),
    gettext_noop("part path"),
    gettext_noop("passage"),
    gettext_noop("passage count"),
    gettext_noop("passages"),
    gettext_noop("paused until"),
    gettext_noop("person"),
    gettext_noop("person id"),
    gettext_noop("pinned at"),
    gettext_noop("place"),
    gettext_noop("prefix"),
    gettext_noop("progress done"),
    gettext_noop("progress total"),
    gettext_noop("project"),
    gettext_noop("projects"),
    gettext_noop("proof result"),
    gettext_noop("proof results"),
    gettext_noop("public id"),
    gettext_noop("question"),
    gettext_noop("question it answers"),
    gettext_noop("questions"),
    gettext_noop("questions it answers"),
    gettext_noop("queue position"),
    gettext_noop("rating"),
    gettext_noop("reason"),
    gettext_noop("reasons"),
    gettext_noop("remind on"),
    gettext_noop("request id"),
    gettext_noop("restricted"),
    gettext_noop("revoked at"),
    gettext_noop("run"),
    gettext_noop("runs"),
    gettext_noop("scope"),
    gettext_noop("scopes"),
    gettext_noop("search"),
    gettext_noop("secret"),
    gettext_noop("seen at"),
    gettext_noop("sha256"),
    gettext_noop("share"),
    gettext_noop("shared"),
    gettext_noop("shares"),
    gettext_noop("size"),
    gettext_noop("source"),
    gettext_noop("source of a verified answer"),
    gettext_noop("source url"),
    gettext_noop("sources"),
    gettext_noop("sources of verified answers"),
    gettext_noop("started by"),
    gettext_noop("starting question"),
    gettext_noop("starting questions"),
    gettext_noop("state"),
    gettext_noop("status"),
    gettext_noop("stop requested"),
    gettext_noop("subject"),
    gettext_noop("team"),
    gettext_noop("title"),
    gettext_noop("title by owner"),
    gettext_noop("total"),
    gettext_noop("undoes"),
    gettext_noop("up to"),
    gettext_noop("updated at"),
    gettext_noop("url"),
    gettext_noop("usage"),
    gettext_noop("usages"),
    gettext_noop("user"),
    gettext_noop("valid until"),
    gettext_noop("value"),
    gettext_noop("vector"),
    gettext_noop("vectors"),
    gettext_noop("verified answer"),
    gettext_noop("verified answers"),
    gettext_noop("version"),
    gettext_noop("versions"),
    gettext_noop("wanted"),
    gettext_noop("webhook deliveries"),
    gettext_noop("webhook delivery"),
    gettext_noop("wish"),
    gettext_noop("wrong sources"),
    gettext_noop("agent name"),
    gettext_noop("attempted at"),
    gettext_noop("attempts"),
    gettext_noop("chosen"),
    gettext_noop("citations"),
    gettext_noop("client id"),
    gettext_noop("client members"),
    gettext_noop("content"),
    gettext_noop("content type"),
    gettext_noop("data"),
    gettext_noop("detail"),
    gettext_noop("endpoint"),
    gettext_noop("error code"),
    gettext_noop("event"),
    gettext_noop("finish reason"),
    gettext_noop("follows"),
    gettext_noop("followups"),
    gettext_noop("imported"),
    gettext_noop("next at"),
    gettext_noop("position"),
    gettext_noop("role"),
    gettext_noop("run id"),
    gettext_noop("searched count"),
    gettext_noop("status code"),
    gettext_noop("thoughts"),
    gettext_noop("verification"),
    gettext_noop("verified"),
    gettext_noop("words"),
)

# Messages that Django's own catalogues leave out, or word in another way than this site.
OF_DJANGO = (
    gettext_noop("After you’ve created a user, you’ll be able to edit more user options."),
    gettext_noop("This action will <strong>enable</strong> password-based authentication for this user."),
    gettext_noop("Disable password-based authentication"),
    gettext_noop("Enable password-based authentication"),
    gettext_noop("In case you’ve forgotten, you are:"),
    gettext_noop("Conflicting form data submitted. Please try again."),
    gettext_noop("Password-based authentication was disabled."),
    gettext_noop("Set password: %s"),
    gettext_noop("Reset password"),
    gettext_noop("Set password"),
    gettext_noop(
        "Whether the user will be able to authenticate using a password or not. If disabled, they may still"
        " be able to authenticate using other backends, such as Single Sign-On or LDAP."
    ),
    gettext_noop("Password-based authentication"),
    gettext_noop("Enabled"),
    gettext_noop("Disabled"),
    gettext_noop("Raw passwords are not stored, so there is no way to see the user’s password."),
    gettext_noop("Enable password-based authentication for this user by setting a password."),
    gettext_noop("Save and add another"),
    gettext_noop("Save and continue editing"),
    gettext_noop("Save as new"),
    gettext_noop("History"),
)
# The queue's models are of another package.
OTHERS = {
    "ProcrastinateJob": (gettext_lazy("job of the workers"), gettext_lazy("jobs of the workers")),
    "ProcrastinateEvent": (gettext_lazy("event of a job"), gettext_lazy("events of a job")),
}


def translate_names() -> None:
    """Make plain names of our models translatable when they are shown."""
    for name, (one, several) in OTHERS.items():
        options = apps.get_model("procrastinate", name)._meta
        options.verbose_name, options.verbose_name_plural = one, several
    for model in _models():
        options = model._meta
        with override("en"):
            name = str(options.verbose_name)
        if "verbose_name_plural" not in options.original_attrs:
            options.verbose_name_plural = gettext_lazy(f"{name}s")
        if not isinstance(options.verbose_name, Promise):
            options.verbose_name = gettext_lazy(name)
        for field in fields(model):
            if not isinstance(field.verbose_name, Promise):
                field.verbose_name = gettext_lazy(field.verbose_name)


def fields(model: type[Model]) -> list[Any]:
    """The model's own fields, without reverse relations."""
    return [*model._meta.fields, *model._meta.many_to_many]


def _models() -> Iterable[type[Model]]:
    for app in APPS:
        yield from apps.get_app_config(app).get_models(include_auto_created=True)
