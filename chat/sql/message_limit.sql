-- The daily message limit; no row, or NULL, means that there is no limit.
SELECT allowed.messages FROM chat_message_limit(:'owner') AS allowed
