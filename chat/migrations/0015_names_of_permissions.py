from django.db import migrations

# Django sets the name of a permission only when it creates the permission.
RENAME = """
    UPDATE auth_permission SET name = replace(auth_permission.name, %s, %s)
    FROM django_content_type
    WHERE django_content_type.id = auth_permission.content_type_id
      AND app_label = 'chat' AND model = 'verifiedcitation'
"""
BEFORE, NOW = " source", " source of a verified answer"


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0014_proof'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='verifiedcitation',
            options={'ordering': ['pk'], 'verbose_name': 'source of a verified answer', 'verbose_name_plural': 'sources of verified answers'},
        ),
        migrations.RunSQL([(RENAME, [BEFORE, NOW])], [(RENAME, [NOW, BEFORE])]),
    ]
