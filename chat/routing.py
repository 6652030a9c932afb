"""WebSocket URLs."""

websocket_urlpatterns: list[object] = []
