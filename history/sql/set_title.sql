-- A title that the site found, where the owner has chosen none and it says something new.
UPDATE history_conversation
SET title = :'title', search = array_to_tsvector(:'words'::text[])
WHERE id = :'conversation' AND owner_id = :'owner' AND NOT title_by_owner AND title <> :'title'
RETURNING id
