        -- Of one word in one passage. The weights are those of D (content), C, B (heading) and A (title).
        ts_rank('{0.8, 0.8, 1, 1}', hit.search, hit.query, 1)
