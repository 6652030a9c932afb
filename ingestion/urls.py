from django.urls import URLPattern

app_name = "ingestion"
urlpatterns: list[URLPattern] = []
