"""`/auth_setup` and `/config`, which the React front ends of RAG chat read at the start.

`/config` lists the features of this site. Features that the site lacks are off: uploads, speech, image
embeddings, agentic retrieval, query rewriting, reasoning effort, web and SharePoint sources, and a history in
the front end's own database.
"""

from chat.events import Json


def auth_setup() -> Json:
    """No sign-in in the front end: the site's session or a proxy's token authenticates the caller."""
    return {
        "useLogin": False,
        "requireAccessControl": False,
        "enableUnauthenticatedAccess": True,
        "msalConfig": {
            "auth": {
                "clientId": "",
                "authority": "",
                "redirectUri": "/redirect",
                "postLogoutRedirectUri": "/",
                "navigateToLoginRequestUrl": False,
            },
            "cache": {"cacheLocation": "sessionStorage", "storeAuthStateInCookie": False},
        },
        "loginRequest": {"scopes": []},
        "tokenRequest": {"scopes": []},
    }


def config(*, reads_images: bool, ranks: bool) -> Json:
    """The features, under the names that front ends have used since 2025.

    `reads_images` says whether the model reads images, `ranks` whether the site has a reranking server.
    Without one, the chat model could grade passages, but the feature is not offered then, because it needs
    another call for each question, and these front ends select it by default.
    """
    return {
        "streamingEnabled": True,
        "showVectorOption": True,
        "showSemanticRankerOption": ranks,
        "showGPT4VOptions": reads_images,
        "showMultimodalOptions": reads_images,
        "ragSearchTextEmbeddings": True,
        "ragSearchImageEmbeddings": False,
        "ragSendTextSources": True,
        "ragSendImageSources": reads_images,
        # The next four features need only the browser; the two for speech are off.
        "showLanguagePicker": True,
        "showSpeechInput": False,
        "showSpeechOutputBrowser": False,
        "showChatHistoryBrowser": True,
        "showChatHistoryCosmos": False,
        "showUserUpload": False,
        "showSpeechOutputAzure": False,
        "showAgenticRetrievalOption": False,
        "showQueryRewritingOption": False,
        "showReasoningEffortOption": False,
        "reasoningEffortOptions": [],
        "defaultReasoningEffort": "",
        "defaultRetrievalReasoningEffort": "minimal",
        "webSourceEnabled": False,
        "sharepointSourceEnabled": False,
    }
