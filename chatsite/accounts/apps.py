from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "chatsite.accounts"
    verbose_name = "Accounts"
