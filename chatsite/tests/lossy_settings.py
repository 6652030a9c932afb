"""The site's settings with a Redis between the processes that loses a fifth of what it is told."""

from chatsite.settings import *  # noqa: F403
from chatsite.settings import CHANNEL_LAYERS

CHANNEL_LAYERS["default"]["BACKEND"] = "chatsite.tests.lossy_layer.LossyLayer"
