"""Conversations, their messages, the sources of each answer, and links that share them."""

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
