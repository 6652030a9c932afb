-- Set a generated title, unless the owner has chosen one or the title is the same.
UPDATE history_conversation
SET title = :'title', search = array_to_tsvector(:'words'::text[])
WHERE id = :'conversation' AND owner_id = :'owner' AND NOT title_by_owner AND title <> :'title'
RETURNING id
