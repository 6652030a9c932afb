-- Where many passages may be read: words and vectors by their indexes.
WITH
-- include: documents
,

-- include: words
,

-- include: hits_by_word
,

-- include: weights
,

-- include: nearest_indexed
,

-- include: candidates
