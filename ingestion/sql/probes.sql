            -- Numbers of documents, spread evenly over all that were ever given.
            SELECT DISTINCT known.lowest + (known.span * probe.number / %(probes)s)
            FROM (
                SELECT min(every.id) AS lowest, max(every.id) - min(every.id) + 1 AS span FROM ingestion_document AS every
            ) AS known
            CROSS JOIN generate_series(0, %(probes)s - 1) AS probe (number)
