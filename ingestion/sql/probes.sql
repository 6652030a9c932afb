            -- Numbers of documents, spread evenly over all that were ever given.
            SELECT DISTINCT 1 + given.last_value * probe.number / %(probes)s
            FROM ingestion_document_id_seq AS given
            CROSS JOIN generate_series(0, %(probes)s - 1) AS probe (number)
