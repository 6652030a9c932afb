"""Models of conversations, messages, sources of answers, and links that share conversations."""

from .conversations import Conversation, ConversationQuerySet, Project, ProjectQuerySet
from .messages import Feedback, Message, MessageQuerySet, Source, SourceQuerySet
from .shared_links import OpenedShare, Share, ShareQuerySet

__all__ = [
    "Conversation",
    "ConversationQuerySet",
    "Feedback",
    "Message",
    "MessageQuerySet",
    "OpenedShare",
    "Project",
    "ProjectQuerySet",
    "Share",
    "ShareQuerySet",
    "Source",
    "SourceQuerySet",
]
