"""The site's settings with a Redis between the processes that loses a fifth of all messages."""

from chatsite.settings import CHANNEL_LAYERS
from chatsite.tests.site_settings import *  # noqa: F403

CHANNEL_LAYERS["default"]["BACKEND"] = "chatsite.tests.failures.lossy_layer.LossyLayer"
