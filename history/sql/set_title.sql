-- A title that the site found, where the owner has chosen none and it says something new.
UPDATE history_conversation
SET title = %(title)s, search = array_to_tsvector(%(words)s::text[])
WHERE id = %(conversation)s AND owner_id = %(owner)s AND NOT title_by_owner AND title <> %(title)s
RETURNING id
