-- Where some thousand passages may be read: the words by their index, and every readable vector.
WITH
-- include: lists
,

-- include: documents
,

-- include: words
,

-- include: found
,

-- include: hits_by_word
,

-- include: weights
,

-- include: nearest_exact
,

-- include: candidates
