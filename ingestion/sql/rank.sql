        -- Of one word in one passage. The weights are those of D (content), C, B (heading) and A (title). What is sought
        -- in several ways at once would count by the mean of them, and counts by all.
        hit.operands *
        ts_rank('{0.8, 0.8, 1, 1}', hit.search, hit.query, 1)
