from django.db import migrations

# If a dump does not set a reader, row-level security hides every document from it, and pg_dump silently
# writes a dump without documents. This table has one row that cannot be read without a reader.
TABLE = """
CREATE TABLE ingestion_dumpguard (words text NOT NULL);
INSERT INTO ingestion_dumpguard VALUES ('A dump that holds this row holds all documents.');
CREATE FUNCTION ingestion_demand_everything() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF current_setting('chatsite.reader', true) = 'everything' THEN
        RETURN true;
    END IF;
    RAISE EXCEPTION 'this dump would leave out every document: use manage.py backup, or set'
        ' PGOPTIONS=''-c chatsite.reader=everything'''
        USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE POLICY readers ON ingestion_dumpguard USING (ingestion_demand_everything());
ALTER TABLE ingestion_dumpguard ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
"""
NO_TABLE = """
DROP TABLE ingestion_dumpguard;
DROP FUNCTION ingestion_demand_everything();
"""


class Migration(migrations.Migration):
    """Let a dump without the documents fail with an error."""

    dependencies = [("ingestion", "0014_document_questions")]

    operations = [migrations.RunSQL(TABLE, NO_TABLE)]
