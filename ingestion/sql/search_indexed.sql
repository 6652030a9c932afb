-- Where many passages may be read: words and vectors by their indexes. Nothing here grows with the number of
-- documents.
WITH RECURSIVE
-- include: lists
,

-- include: languages
,

-- include: words
,

-- include: found
,

-- include: nearest_indexed
,

-- include: documents_found
,

-- include: hits_by_word
,

-- include: weights
,

-- include: candidates
