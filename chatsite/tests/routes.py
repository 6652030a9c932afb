"""Every URL of the site, read from the URL configuration, and addresses built from them."""

import re
from functools import cache

from django.urls import URLPattern, get_resolver, reverse

from chat.routing import websocket_urlpatterns


def routes(patterns=None, prefix=""):
    """[(name with its namespace, pattern)] of every HTTP URL."""
    found = []
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        if isinstance(pattern, URLPattern):
            found.append((prefix + (pattern.name or str(pattern.pattern)), pattern))
        else:
            inner = prefix + (f"{pattern.namespace}:" if pattern.namespace else "")
            found += routes(pattern.url_patterns, inner)
    return found


def socket_routes():
    """Patterns of every WebSocket URL."""
    return [str(pattern.pattern) for pattern in websocket_urlpatterns]


def socket_address(pattern, arguments):
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda match: str(arguments[match[1]]), pattern)


def parameters(pattern):
    """The names of a URL's parameters."""
    return set(pattern.pattern.converters) or set(re.findall(r"\?P<(\w+)>", str(pattern.pattern)))


def address(name, arguments):
    """The path of a named route, with those of `arguments` (parameter: value) that it needs."""
    pattern = _patterns()[name]
    wanted = parameters(pattern)
    missing = wanted - set(arguments)
    assert not missing, f"{name} has parameters that the world has no value for: {sorted(missing)}"
    return reverse(name, kwargs={key: arguments[key] for key in wanted})


@cache
def _patterns():
    """{name: its first pattern} of every HTTP URL."""
    return dict(reversed(routes()))


def admin_addresses():
    """(name, path) of every page of the admin, each once, with unknown numbers as ids."""
    values = {
        "app_label": "auth",
        "content_type_id": 1,
        "object_id": "1",
        "url": "nothing/",
        "what": "people",
    }
    found = {}
    for name, pattern in routes():
        if not name.startswith("admin:"):
            continue
        if pattern.name is None:  # each model has one
            path = "/admin/nothing-here/"
        else:
            path = reverse(name, kwargs={key: values.get(key, 1) for key in parameters(pattern)})
        found.setdefault(path, name)
    for path, name in found.items():
        yield name, path
