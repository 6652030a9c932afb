"""A channel layer on a real Redis that loses messages."""

import random

from channels_redis.core import RedisChannelLayer

LOST = 0.2


class LossyLayer(RedisChannelLayer):
    """Drops a fifth of all messages."""

    async def group_send(self, group, message):
        if random.random() >= LOST:
            await super().group_send(group, message)
