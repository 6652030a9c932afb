-- Messages a day; no row or NULL means no limit.
SELECT allowed.messages FROM chat_message_limit(:'owner') AS allowed
