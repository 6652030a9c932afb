"""What a web process of the real site loads."""

import pytest

pytestmark = pytest.mark.server


def test_without_a_model_server_its_client_is_not_loaded(site):
    (web,) = site.children("chatsite.server.serving.web_process")
    loaded = [region.path for region in web.memory_maps()]
    assert [path for path in loaded if "/psycopg_binary/" in path]
    # The client library takes a third of the time to load a web process, and 27 MB.
    assert [path for path in loaded if "/aiohttp/" in path] == []
