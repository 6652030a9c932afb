from django.db import migrations

# Row-level security hides every document from a dump that says for nobody that it reads, and pg_dump then
# writes a dump without them and no error. So there is a table whose one row cannot be read like that.
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
    """A dump that leaves out the documents ends with an error."""

    dependencies = [("ingestion", "0014_document_questions")]

    operations = [migrations.RunSQL(TABLE, NO_TABLE)]
