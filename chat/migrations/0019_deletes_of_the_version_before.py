from django.db import migrations

from chatsite.db.foreign_keys import act_on_delete

# Tables that version 0.2.0 does not know, and references to these tables.
DELETED = (
    "accounts_device.user_id",
    "accounts_look.person_id",
    "accounts_webhookdelivery.endpoint_id",
    "accounts_webhookendpoint.api_key_id",
    "accounts_webhookendpoint.owner_id",
    "chat_asker.person_id",
    "chat_dayfigures.group_id",
    "chat_documentuse.document_id",
    "chat_proofquestion.asker_id",
    "chat_proofresult.question_id",
    "chat_proofresult.run_id",
    "chat_proofrun.group_id",
    "chat_startingquestion.group_id",
    "chat_unansweredquestion.conversation_id",
    "chat_unansweredquestion.message_id",
    "chat_unansweredquestion.owner_id",
    "chat_verifiedanswer_groups.group_id",
    "chat_verifiedcitation.document_id",
    "history_feedback.message_id",
    "history_project.owner_id",
    "history_share.answer_id",
    "history_share.conversation_id",
    "history_source.document_id",
    "ingestion_document.part_of_id",
    "ingestion_externalid.document_id",
    "ingestion_externalid.owner_id",
    "ingestion_formerid.document_id",
    "ingestion_houseword_groups.group_id",
    "ingestion_passage.document_id",
    "ingestion_passagewords.document_id",
    "ingestion_passagewords.passage_id",
    "ingestion_preparedvector.document_id",
    "ingestion_sourcefile.document_id",
    "ingestion_vector.document_id",
    "ingestion_vector.passage_id",
)
EMPTIED = (
    "accounts_look.reader_id",
    "chat_dismissedquestion.dismissed_by_id",
    "chat_proofquestion.added_by_id",
    "chat_proofquestion.document_id",
    "chat_proofrun.started_by_id",
    "chat_sitetexts.changed_by_id",
    "chat_verifiedanswer.owner_id",
    "history_conversation.project_id",
    "ingestion_bulkchange.actor_id",
)


class Migration(migrations.Migration):
    atomic = False  # each table is locked only briefly, and not while another one is validated

    dependencies = [
        ('accounts', '0036_names_in_old_subjects'),
        ('chat', '0018_unanswered_questions'),
        ('history', '0020_project_members'),
        ('ingestion', '0022_stems'),
    ]

    operations = [
        migrations.RunSQL(act_on_delete("CASCADE", DELETED), migrations.RunSQL.noop),
        migrations.RunSQL(act_on_delete("SET NULL", EMPTIED), migrations.RunSQL.noop),
    ]
